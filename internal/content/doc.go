// Package content keeps documents of projects and publishes them as numbered,
// immutable releases. It holds the rules and knows nothing of HTTP or DynamoDB.
//
// It promises: a release holds every document that was saved before the publish
// was asked for, and so does every later one ([Service.Publish] reads the drafts
// after the project); a project's releases are numbered 1, 2, 3 … without a gap,
// because the number is the condition under which a release is written; a
// release and its deliveries are written together or not at all; an idempotency
// key makes at most one release, also under timeouts and side by side.
//
// I4 begins here: a delivery's id and body are made by [Config.Announce] for the
// transaction that writes them and are never made again: a transaction whose
// outcome is unknown is asked again as it is. I7: publishing looks at no
// destination's state, so no destination can hold up an editor.
//
// A document has one name: its path in the form NFC, by which it is found in
// whichever form it is asked for. A project has a limit of publishes, kept with
// the project, and one of content.
//
// It leaves the writes to internal/store, the bytes of an announcement to
// internal/webhook, what becomes of it to internal/delivery, and who may ask to
// internal/access.
package content
