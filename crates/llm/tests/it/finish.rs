//! The finish comes last, whatever a server sends after it.

use hookgate_llm::{Answer, Delta, Provider, sse};

/// The answer's text, calls as `id(arguments)`, and finish, after the check that the finish comes last.
fn check(provider: Provider, events: &[&str], expected: &str) {
    let stream: String = events.iter().map(|data| format!("data: {data}\n\n")).collect();
    let (mut parser, mut decoder, mut deltas) = (sse::Parser::new(), (provider.wire().decoder)(), Vec::new());
    parser.push(stream.as_bytes());
    while let Some(event) = parser.next_event().unwrap() {
        decoder.event(&event, &mut deltas).unwrap();
    }
    decoder.finish(&mut deltas).unwrap();
    assert!(matches!(deltas.last(), Some(Delta::Finish(_))), "{events:?}: {deltas:?}");
    let mut answer = Answer::default();
    deltas.into_iter().for_each(|delta| answer.push(delta));
    let calls = answer.message.tool_calls.iter().map(|call| format!(" {}({})", call.id, call.arguments));
    let calls: String = calls.collect();
    let shown = format!("{}{calls} .{}", answer.message.content, answer.finish.unwrap().raw);
    assert_eq!(shown, expected, "{events:?}");
}

#[test]
fn what_comes_late_is_part_of_the_answer() {
    check(
        Provider::OpenAiChat,
        &[
            r#"{"id":"a","choices":[{"delta":{"content":"sec"},"finish_reason":"stop"}]}"#,
            r#"{"choices":[{"delta":{"content":"ret"},"finish_reason":"stop"}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":"{"}}]},"finish_reason":"length"}]}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":1}}"#,
        ],
        "secret call_a_0({) .length",
    );
    check(
        Provider::Anthropic,
        &[
            r#"{"type":"content_block_start","content_block":{"type":"text","text":"sec"}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
            r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"ret"}}"#,
        ],
        "secret .end_turn",
    );
}
