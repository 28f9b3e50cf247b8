// Package referee judges clients in any language: their use of idempotency keys
// with a server that makes it hard.
//
//	judge := referee.New(referee.DefaultScript())
//	server := mockserver.New(mockserver.Config{Referee: judge})
//	if err := server.Start(); err != nil { ... }
//	defer server.Close()
//	// Let the client send its operations to server.URL() + "/payments",
//	// each with another {"reference": …}, then:
//	<-judge.Finished()
//	for _, c := range judge.Report().Cases { ... }
//
// A [Script] holds the faults of each operation: a lost answer, a 503, a 409 while
// the first request is being handled. [Rules] lists the rules for the client. The
// [Report] has one verdict for each rule: pass, fail (warn for a should), or skip
// if the client gave no occasion to judge the rule.
//
// # Limits of the evidence
//
// A server knows when it has written an answer, but not if the client has read
// it: the client may have been killed in between. A send that follows an answer
// too early, or follows a final one at all, counts only if it came on the same
// connection: a client of HTTP/1.1 uses a connection again only after it has read
// the answer before. A client with a new connection for each request, or with
// HTTP/2, is not judged by those rules, and the report says so.
//
// Every use of a nil [Referee], server or send panics.
package referee
