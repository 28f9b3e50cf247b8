// Package mockserver is an HTTP server that honours idempotency keys as a
// profile says, breaks on demand, and keeps a ledger of what really took effect.
//
//	server := mockserver.New(mockserver.Config{
//		Script: []mockserver.Fault{{Kind: mockserver.DropAfter}},
//	})
//	if err := server.Start(); err != nil { ... }
//	defer server.Close()
//	// POST to server.URL() + "/payments": the first answer is lost.
//	server.Ledger().Effects(key) // 1, however often the client sent it
//
// An effect is what the server did; a send is one request that reached it. The
// package exists so that a client can be shown an effect whose answer was lost,
// and can be held to the count afterwards.
//
// # Serving
//
// A [Server] is an [net/http.Handler]. [Server.Start] puts it on a loopback
// port; [Server.Pipe] serves it over an in-memory pipe, which also works in
// virtual time (testing/synctest), where every wait of this package passes at
// once. A server that is used inside a bubble has to be made inside it too, and
// closed before the bubble ends.
//
// # The service
//
// Without [Config.Handler], POST to any path creates a resource: the body is a
// JSON object, a form, something with another content type, or empty, and the
// answer is 201 with an id and a Location. POST /payments/{id}/cancel (any verb
// in the last place) and PATCH /payments/{id} act on a resource, GET reads it.
// With the profile stripe or increase, GET /payments is the list of what the
// caller made there, as that API spells it (limit, starting_after, created[gte];
// limit, cursor, idempotency_key; other filters are answered 400), and resources
// have the members of their requests.
// Two query parameters steer a request: sleep=MS holds the effect back for so
// many milliseconds, fail=STATUS answers with that status and has no effect
// (crash=1: the handler panics). They belong to what a key names, as every
// query does.
//
// A fault with the status 402 is a declined payment, with a code in its JSON
// body: {"error":{"code":"payment_declined","message":"The payment was
// declined."}}. With a profile the code stands at the place of the code in that
// API's other errors, such as /details/0/issue; stripe and square have the
// API's own codes, such as card_declined. Any other answer of a fault is
// {"error":{"status":N,"message":…}}, and Fault.Body replaces each.
//
// GET /_ledger, GET /_effects?ref=R, POST /_reset, POST /_expire (all windows
// have passed), POST /_restart (as killing and starting it again) and POST /_finish (the referee's verdict) are for the person who
// tests; they are no sends, and no fault touches them.
//
// # Clients and their mistakes
//
// The rules for clients that can be judged as requests arrive are watched, and
// [Server.Err] joins what was seen. A [Referee] goes further: it plays through
// situations in which clients go wrong, one for each operation, and judges the
// client by all rules at the end. Package referee has one, for Config.Referee.
//
// # Broken servers
//
// [Config.Bug] makes the server a broken one, with one bug of the catalogue in
// package bugs: something for a suite of server tests to catch.
//
// # Limits
//
// It is a test double: everything is kept in memory until it expires or
// POST /_reset, ids are counters, no caller is authenticated (the Authorization
// header only tells principals apart; [Config.Verify] checks signatures), and what a fault does to HTTP/2 is not
// promised.
//
// A nil [Server], [Ledger], [Pipe] or [Send] panics where it is used.
package mockserver
