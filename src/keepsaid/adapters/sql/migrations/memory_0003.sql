-- What was said in a direct chat belongs to its person, whoever that is; only the owner's did before.
INSERT INTO memory_audience (scope, external, bound, laned, channel, account, conversation, lane_key)
SELECT DISTINCT
  'person:' || memory.chat_of, was.external, was.bound, was.laned, was.channel, was.account, was.conversation, was.lane_key
FROM memory CROSS JOIN memory_audience AS was ON was.id = memory.audience
WHERE memory.chat_of <> '' AND memory.scope >= 'conversation:' AND memory.scope < 'conversation;' AND memory.state <> 'forgotten'
AND memory.kind NOT IN ('thread_summary', 'session_summary', 'thread_state', 'bulletin')
ON CONFLICT DO NOTHING;

UPDATE memory SET
  row_seal = NULL,
  scope = 'person:' || chat_of,
  content_hash = digest(kind, 'person:' || chat_of, speaker, subject, text),
  audience = (
    SELECT now.id FROM memory_audience AS was CROSS JOIN memory_audience AS now
    WHERE was.id = memory.audience AND now.scope = 'person:' || memory.chat_of
    AND now.external = was.external AND now.bound = was.bound AND now.laned = was.laned AND now.channel = was.channel
    AND now.account = was.account AND now.conversation = was.conversation AND now.lane_key = was.lane_key
  )
WHERE chat_of <> '' AND scope >= 'conversation:' AND scope < 'conversation;' AND state <> 'forgotten'
AND kind NOT IN ('thread_summary', 'session_summary', 'thread_state', 'bulletin');
