// Package referee judges clients: what a client in any language does with its
// idempotency keys when the server is hard on it.
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
// A [Script] says what each operation meets: a lost answer, a 503, a 409 while
// the first request is being handled. [Rules] says what is asked of the client.
// The [Report] has one verdict for each rule: pass, fail (warn where the rule is
// a should), or skip where the client gave no occasion to judge the rule.
//
// # What a referee can know
//
// A server knows that it has written an answer, and not that the client has read
// it: the client may have been killed in between. So a send that follows an
// answer too early, or follows a final one at all, counts only where it came on
// the same connection, which a client of HTTP/1.1 uses again only when it has
// read the answer before. A client that makes a connection for each request, or
// speaks HTTP/2, is not judged by those rules, and the report says so.
//
// A nil [Referee], server or send panics where it is used.
package referee
