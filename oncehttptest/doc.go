// Package oncehttptest tests code that sends with an oncehttp.Client: a client on a journal, against a scripted server,
// in virtual time.
//
//	func TestPay(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			kit := oncehttptest.New(t, oncehttptest.Config{})
//			kit.LoseAnswer() // the server acts on the next send, and its answer is lost
//			if err := pay(kit.Client(), kit.URL, "order-7"); err != nil || kit.Effects("order-7") != 1 {
//				t.Errorf("%v, %d effects", err, kit.Effects("order-7"))
//			}
//		})
//	}
//
// A [Kit] is made inside of a bubble of testing/synctest: there, waits of the client and of the server take no real time.
// It ends with the test.
//
// # Faults
//
// [Kit.LoseAnswer] and [Kit.Next] set the faults of the next sends:
//
//	kit.Next(mockserver.Fault{Kind: mockserver.Answer, Status: 409})            // the first request is still being handled
//	kit.Next(mockserver.Fault{Kind: mockserver.Answer, Status: 402}) // a declined payment
//	kit.Next(mockserver.Fault{Kind: mockserver.HangAfter})                      // an effect, and no answer until the client leaves
//
// [Kit.Crash] ends the process of the client at once, and begins the next one on the same journal:
//
//	kit.Next(mockserver.Fault{Kind: mockserver.HangAfter})
//	go pay(kit.Client(), kit.URL, "order-7")
//	synctest.Wait() // until the client waits for its answer
//	kit.Crash()
//	for res, err := range kit.Client().Resume(t.Context()) { … }
//
// [Kit.Pass] lets time pass. An operation in doubt is held once the server may have forgotten its key:
//
//	kit.Next(mockserver.Fault{Kind: mockserver.HangAfter})
//	… // as above
//	kit.Crash()
//	kit.Pass(25 * time.Hour) // the window of profile.Draft07 is 24 h
//	… // Resume now gives ErrHeld with ErrKeyExpired; kit.Client().Settle ends it
//
// [Kit.Server] has the rest: its ledger, its other faults, its rules for clients.
//
// # Code that takes an http.Client
//
// Give it kit.Client().StandardClient(). Requests to every host reach the server, https included, so that a base URL
// need not be changed; [Kit.URL] is one that always works.
//
// # Limits
//
// The journal is package persist/memory: its records outlive [Kit.Crash], and nothing else does. Like a journal in a file
// it belongs to one process: the leases of processes on a database are not simulated. A call during a crash returns an
// error, though in reality its process would be gone; later calls of its client return ErrClosed. Do not use a client from
// before a crash; call Client again. The server is a test double that keeps to its profile; test the API itself with
// package conformance.
package oncehttptest
