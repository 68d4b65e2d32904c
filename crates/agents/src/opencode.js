// Written by `hookgate install opencode`; `hookgate uninstall opencode` takes it away.
// Hands what happens to hookgate and does what it says. Whatever goes wrong before a tool or a prompt stops it.
import { spawn } from "node:child_process"

const PROGRAM = {{program}}
const ARGUMENTS = {{arguments}}
const LIMIT_MS = {{limit}}

function ask(event, payload) {
  return new Promise((resolve, reject) => {
    const child = spawn(PROGRAM, [...ARGUMENTS, event], { stdio: ["pipe", "pipe", "pipe"] })
    const timer = setTimeout(() => {
      child.kill("SIGKILL")
      reject(new Error("hookgate gave no answer in time"))
    }, LIMIT_MS)
    let out = ""
    child.stdout.setEncoding("utf8")
    child.stdout.on("data", (text) => (out += text))
    child.stderr.resume()
    child.stdin.on("error", () => {})
    child.on("error", (error) => {
      clearTimeout(timer)
      reject(new Error(`hookgate cannot be started: ${error.message}`))
    })
    child.on("close", (code) => {
      clearTimeout(timer)
      if (code !== 0) return reject(new Error(`hookgate ended with code ${code}`))
      resolve(out.trim())
    })
    child.stdin.end(JSON.stringify(payload))
  })
}

function obey(said, output) {
  if (said === "") return
  const answer = JSON.parse(said)
  if (typeof answer.throw === "string") throw new Error(answer.throw.replace(/^Error: /, ""))
  if (typeof answer.output !== "object" || answer.output === null) throw new Error("hookgate gave a strange answer")
  for (const [key, value] of Object.entries(answer.output)) {
    if (key === "args" && output.args) {
      for (const name of Object.keys(output.args)) if (!(name in value)) delete output.args[name]
      Object.assign(output.args, value)
    } else if (Array.isArray(value) && Array.isArray(output[key])) {
      output[key].splice(0, output[key].length, ...value)
    } else {
      output[key] = value
    }
  }
}

export const Hookgate = async ({ directory }) => {
  const gate = (event) => async (input, output) => {
    const said = await ask(event, { directory, input, output })
    if (said === "" && event === "tool.execute.before") throw new Error("hookgate said nothing")
    obey(said, output)
  }
  const watch = (event) => async (input, output) => {
    let said = ""
    try {
      said = await ask(event, { directory, input, output })
    } catch {
      return
    }
    obey(said, output)
  }
  return {
    "tool.execute.before": gate("tool.execute.before"),
    "chat.message": gate("chat.message"),
    "tool.execute.after": watch("tool.execute.after"),
    "experimental.text.complete": watch("experimental.text.complete"),
    event: async ({ event }) => {
      if (event.type !== "session.created" && event.type !== "session.idle") return
      await ask(`event.${event.type}`, { directory, event }).catch(() => {})
    },
  }
}
