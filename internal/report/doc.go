// Package report holds the verdicts of a run, of the conformance suite over a
// server or of the referee over a client, and writes them for people and for
// machines: text, JSON, JUnit XML, HTML and Markdown.
//
// The JSON form is the source of all others: [Parse] reads it back, and every
// writer renders nothing that is not in it. What a report proves is only what
// its cases saw, through the witness that each names; "pass" is never a proof
// of exactly-once.
//
// # Secrets
//
// Credentials are taken out when a report is written, in every format and also
// in JSON, unless [Options.ShowSecrets] asks for them: the values of headers and
// JSON members whose names look like secrets, userinfo in URLs, and those same
// values wherever else they turn up. A secret under an innocent name is not
// found.
//
// # Shell lines
//
// A failure and a warning come with lines for a shell that send the requests of
// the finding again, in their order ([Case.Try]): with new keys and references,
// with variables in place of credentials, and in the background where they
// overlapped. The last lines ask the witness.
//
// The package imports the standard library only, and nothing of this module.
package report
