//! What tools do, whatever an agent calls them.

/// A kind of tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// Runs a shell line.
    Exec,
    /// Writes a whole file.
    WriteFile,
    /// Changes parts of a file.
    EditFile,
    /// Changes files by a patch; its text is the member `command`.
    Patch,
    /// Changes a file as its member `command` says.
    WriteOrEdit,
    /// The same where it says that a whole file is written.
    WriteWithWord,
    /// Reads files.
    ReadFile,
    /// Looks for files or text in them.
    Search,
    /// Gets a page.
    FetchPage,
    /// Asks a search engine.
    WebSearch,
    /// Starts a sub-agent.
    Subagent,
    /// A tool of a Model Context Protocol server.
    Mcp,
}

impl Tool {
    /// Our name for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Tool::Exec => "exec",
            Tool::WriteFile | Tool::WriteWithWord => "write_file",
            Tool::EditFile | Tool::Patch | Tool::WriteOrEdit => "edit_file",
            Tool::ReadFile => "read_file",
            Tool::Search => "search",
            Tool::FetchPage => "fetch_page",
            Tool::WebSearch => "web_search",
            Tool::Subagent => "subagent",
            Tool::Mcp => "mcp",
        }
    }
}
