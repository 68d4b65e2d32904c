//! Scripts: any text is read or refused; what is read plays to its end, the same way each time.

#![no_main]

use futures_util::StreamExt;
use hookgate_llm::{Answer, Message, Model, Request, Script, Scripted, ToolSpec};
use libfuzzer_sys::fuzz_target;

/// Longer scripts say nothing new.
const LONGEST: usize = 4 << 10;
/// Rounds of tool calls that are played.
const ROUNDS: usize = 3;

fuzz_target!(|input: &str| {
    if input.len() > LONGEST {
        return;
    }
    let script = match Script::parse(input) {
        Ok(script) => script,
        Err(error) => return assert!(error.to_string().starts_with("script, ")),
    };
    // The clock stands still and jumps to the next pause's end when there is nothing else to do.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let first = converse(script.clone()).await;
        assert_eq!(first, converse(script).await);
    });
});

/// One conversation: rounds of tool calls, then another prompt. Everything that was said.
async fn converse(script: Script) -> Vec<Result<Answer, String>> {
    let model = Scripted::new(script);
    let mut said = Vec::new();
    let mut request = Request { messages: vec![Message::user("run {last_tool} é")], ..Request::default() };
    for round in 0..ROUNDS {
        let result = answer(&model, &request).await;
        said.push(result.clone());
        let Ok(answer) = result else { break };
        let calls = answer.message.tool_calls.clone();
        // From the second round on, every tool that was wished for is offered.
        let offer = |name: &str| ToolSpec { name: name.to_owned(), ..ToolSpec::default() };
        request.tools.extend(["exec", ""].into_iter().chain(calls.iter().map(|call| &*call.name)).map(offer));
        request.messages.push(answer.message);
        request.messages.extend(calls.iter().map(|call| Message::tool(&call.id, " {prompt} ")));
        if calls.is_empty() && round == 0 {
            request.messages.push(Message::user("secret"));
        }
    }
    said
}

/// Plays one answer and checks what a model promises.
async fn answer(model: &Scripted, request: &Request) -> Result<Answer, String> {
    let mut stream = model.stream(request.clone()).await.map_err(|error| error.to_string())?;
    let (mut answer, mut failure) = (Answer::default(), None);
    while let Some(item) = stream.next().await {
        assert!(failure.is_none() && answer.finish.is_none(), "something follows the end");
        match item {
            Ok(delta) => answer.push(delta),
            Err(error) => failure = Some(error.to_string()),
        }
    }
    assert_eq!(failure.is_none(), answer.finish.is_some(), "an answer ends or fails");
    failure.map_or(Ok(answer), Err)
}
