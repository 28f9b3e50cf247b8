// Package mockserver is an HTTP server that honours idempotency keys as a
// profile says, breaks on demand, and keeps a ledger of its effects.
//
//	server := mockserver.New(mockserver.Config{
//		Script: []mockserver.Fault{{Kind: mockserver.DropAfter}},
//	})
//	if err := server.Start(); err != nil { ... }
//	defer server.Close()
//	// POST to server.URL() + "/payments": the first answer is lost.
//	server.Ledger().Effects(key) // 1, however often the client sent it
//
// A send is one request that reached the server. An effect is one execution of a
// request. The package shows a client effects with lost answers, and counts them
// for the check afterwards.
//
// # Serving
//
// A [Server] is an [net/http.Handler]. [Server.Start] puts it on a loopback
// port; [Server.Pipe] serves it over an in-memory pipe, which also works in
// virtual time (testing/synctest): there, waits of this package take no real
// time. A server for a bubble has to be made inside the bubble, and closed
// before the bubble ends.
//
// # The service
//
// Without [Config.Handler], POST to any path creates a resource: the body is a
// JSON object, a form, something with another content type, or empty, and the
// answer is 201 with an id and a Location. POST /payments/{id}/cancel (any verb
// in the last place) and PATCH /payments/{id} act on a resource, GET reads it.
// With the profile stripe or increase, GET /payments lists the caller's resources
// there, as that API spells it (limit, starting_after, created[gte];
// limit, cursor, idempotency_key; other filters are answered 400), and resources
// have the members of their requests.
// Query parameters steer a request: sleep=MS delays the effect by so many
// milliseconds, fail=STATUS answers with that status and has no effect, crash=1
// lets the handler panic. They are part of the request that a key names, as
// every query is.
//
// A fault with the status 402 is a declined payment, with a code in its JSON
// body: {"error":{"code":"payment_declined","message":"The payment was
// declined."}}. With a profile the code stands at the place of the code in that
// API's other errors, such as /details/0/issue; stripe and square have the
// API's own codes, such as card_declined. Other faults answer
// {"error":{"status":N,"message":…}}. Fault.Body replaces any of these bodies.
//
// The control paths are for the tester: GET /_ledger, GET /_effects?ref=R, POST
// /_reset, POST /_expire (all windows have passed), POST /_restart (as killing
// the server and starting it again) and POST /_finish (the referee's verdict).
// Their requests are no sends, and meet no faults.
//
// # Clients and their mistakes
//
// The server checks some rules for clients as requests arrive; [Server.Err] joins
// the violations. A [Referee] goes further: it plays one hard situation for each
// operation, and judges the client by all rules at the end. Package referee has
// one, for Config.Referee.
//
// # Broken servers
//
// [Config.Bug] gives the server one bug of the catalogue in package bugs, to be
// caught by a suite of server tests.
//
// # Limits
//
// It is a test double: everything is kept in memory until it expires or
// POST /_reset, ids are counters, no caller is authenticated (the Authorization
// header only tells principals apart; [Config.Verify] checks signatures), and the
// effect of a fault on HTTP/2 is not promised.
//
// Every use of a nil [Server], [Ledger], [Pipe] or [Send] panics.
package mockserver
