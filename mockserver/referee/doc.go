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
package referee
