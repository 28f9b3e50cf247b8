// Package report holds the verdicts of a run, of the conformance suite over a
// server or of the referee over a client. It writes them for people and for
// machines: text, JSON, JUnit XML, HTML and Markdown.
//
// The JSON form is the source of all others: [Parse] reads it back, and no
// writer renders more than it holds. A report proves only the observations of
// its cases, through the witness named by each; "pass" is never a proof
// of exactly-once.
//
// # Secrets
//
// Credentials are taken out when a report is written, in every format and also
// in JSON, unless [Options.ShowSecrets] asks for them. They are the values of headers
// and JSON members with names like those of secrets, userinfo in URLs, and the
// same values in all other places. A secret under an innocent name is not
// found.
//
// # Shell lines
//
// A failure and a warning come with lines for a shell ([Case.Try]). They send the
// requests of the finding again, in their order: with new keys and references,
// with variables in place of credentials, and in the background if the requests
// overlapped. The last lines ask the witness.
//
// The package imports the standard library only, and nothing of this module.
package report
