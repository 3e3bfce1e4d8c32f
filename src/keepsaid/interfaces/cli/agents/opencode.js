// Plugin for OpenCode (plugin API of version 1): prompts and answers go to keepsaid, and its memory comes back.
// Nothing here fails: without a running keepsaid, OpenCode works as before.
import { readFileSync } from "node:fs"

const SETTINGS = "@SETTINGS@"
const WAITS_MS = 2000
const OFF = !["", "0", "false", "no", "off"].includes((process.env.KEEPSAID_OFF ?? "").toLowerCase())

const settings = () => {
  try {
    return JSON.parse(readFileSync(SETTINGS, "utf8"))
  } catch {
    return {}
  }
}

const spoken = (parts) =>
  (parts ?? []).filter((one) => one.type === "text" && !one.synthetic && !one.ignored).map((one) => one.text).join("\n\n")

export const KeepsaidPlugin = async ({ client, directory }) => {
  if (OFF) return {}
  const { url = "http://127.0.0.1:7448", token = "" } = settings()

  const send = async (event, session, fields) => {
    try {
      const response = await fetch(`${url}/v1/hooks/opencode`, {
        method: "POST",
        headers: { "Content-Type": "application/json", Authorization: `Bearer ${token}` },
        body: JSON.stringify({ hook_event_name: event, session_id: session, cwd: directory, ...fields }),
        signal: AbortSignal.timeout(WAITS_MS),
      })
      if (!response.ok) return ""
      return (await response.json()).hookSpecificOutput?.additionalContext ?? ""
    } catch {
      return ""
    }
  }

  const started = new Set()

  return {
    "chat.message": async (input, output) => {
      const session = input.sessionID
      const message = output.message?.id ?? input.messageID ?? ""
      const prompt = spoken(output.parts)
      if (!prompt) return
      const standing = started.has(session) ? "" : await send("SessionStart", session, { source: "startup" })
      started.add(session)
      const found = await send("UserPromptSubmit", session, { prompt, prompt_id: message })
      const text = [standing, found].filter(Boolean).join("\n\n")
      const last = output.parts.at(-1)
      if (!text || !last) return
      output.parts.push({ id: `${last.id}m`, sessionID: session, messageID: message, type: "text", text, synthetic: true })
    },
    "experimental.session.compacting": async (input, output) => {
      const text = await send("SessionStart", input.sessionID, { source: "compact" })
      if (text) output.context.push(text)
    },
    event: async ({ event }) => {
      if (event.type !== "session.idle") return
      const session = event.properties.sessionID
      try {
        const found = await client.session.messages({ path: { id: session } })
        const messages = (found.data ?? [])
          .map(({ info, parts }) => ({ role: info.role, id: info.id, text: spoken(parts) }))
          .filter((one) => one.text)
        await send("Stop", session, { messages: messages.slice(-200) })
      } catch {
        return
      }
    },
  }
}
