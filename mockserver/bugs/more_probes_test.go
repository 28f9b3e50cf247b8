package bugs_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/mockserver/internal/mocktest"
)

// repeated: the same request twice has one effect, and the second answer is a
// replay.
func repeated(r request) probe {
	return func(s *mockserver.Server, cl *client) bool {
		if r.Key == "" {
			r.Key = "k"
		}
		cl.Do(r)
		return cl.Do(r).Replayed() && effects(s) == 1
	}
}

// changed: another body under the same key is refused and has no effect.
func changed(first, second string) probe {
	return func(s *mockserver.Server, cl *client) bool {
		cl.Do(request{Key: "k", Body: first})
		return cl.Do(request{Key: "k", Body: second}).Status == 422 && effects(s) == 1
	}
}

func readProbes() map[string]probe {
	return map[string]probe{
		"key-prefix-dropped": distinct("a:7", "b:7"),
		"key-as-number":      distinct("007", "7"),
		"key-url-decoded":    distinct("a%2Fb", "a/b"),
		"comma-cuts-key":     distinct("1,20", "1,30"),
		"two-lines-joined":   refused("a", "b"),
		"non-ascii-dropped":  refused("caf\xc3\xa9"),
		"other-key-ignored":  repeated(request{Key: "order-7"}),
		"short-key-ignored":  repeated(request{Key: "7"}),
	}
}

// bodiless: a POST without a body twice has one effect.
func bodiless(s *mockserver.Server, cl *client) bool {
	for range 2 {
		req, err := http.NewRequest(http.MethodPost, cl.URL+"/payments", http.NoBody)
		if err != nil {
			cl.T.Fatal(err)
		}
		req.Header.Set("Idempotency-Key", "k")
		response, err := cl.HTTP.Do(req)
		if err != nil {
			return false
		}
		response.Body.Close()
	}
	return effects(s) == 1
}

func protectionProbes() map[string]probe {
	// acted: an action on a resource twice is one effect more than its creation.
	acted := func(method, path string) probe {
		return func(s *mockserver.Server, cl *client) bool {
			cl.Post("first")
			act := request{Key: "k", Method: method, Path: path, Body: `{"note":"x"}`}
			cl.Do(act)
			return cl.Do(act).Replayed() && effects(s) == 2
		}
	}
	form := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	long := `{"reference":"r1","note":"` + strings.Repeat("x", 70_000) + `"}`
	return map[string]probe{
		"patch-unprotected":       acted(http.MethodPatch, "/payments/payments_1"),
		"action-unprotected":      acted(http.MethodPost, "/payments/payments_1/cancel"),
		"other-route-unprotected": repeated(request{Path: "/refunds"}),
		"form-unprotected":        repeated(request{Body: "reference=r1", Header: form}),
		"empty-body-unprotected":  bodiless,
		"large-body-unprotected":  repeated(request{Body: long}),
		"authorised-unprotected":  repeated(request{Header: http.Header{"Authorization": {"Bearer a"}}}),
		"chunked-unprotected":     repeated(request{Chunked: true}),
	}
}

func fingerprintProbes() map[string]probe {
	long := `{"reference":"r1","note":"` + strings.Repeat("x", 2000)
	return map[string]probe{
		"body-length-only":   changed(`{"amount":100}`, `{"amount":900}`),
		"body-prefix-only":   changed(long+`a"}`, long+`b"}`),
		"nested-ignored":     changed(`{"to":{"city":"A"}}`, `{"to":{"city":"B"}}`),
		"arrays-ignored":     changed(`{"items":["a"]}`, `{"items":["b"]}`),
		"known-members-only": changed(`{"amount":1,"currency":"EUR"}`, `{"amount":1,"currency":"USD"}`),
		"numbers-rounded":    changed(`{"amount":9007199254740992}`, `{"amount":9007199254740993}`),
		"strings-folded":     changed(`{"name":"Anna"}`, `{"name":"anna "}`),
		"content-type-ignored": func(s *mockserver.Server, cl *client) bool {
			typed := func(kind string) request { return request{Key: "k", Header: http.Header{"Content-Type": {kind}}} }
			cl.Do(typed("application/json"))
			return cl.Do(typed("text/plain")).Status == 422 && effects(s) == 1
		},
		"volatile-header-compared": func(s *mockserver.Server, cl *client) bool {
			from := func(agent string) request { return request{Key: "k", Header: http.Header{"User-Agent": {agent}}} }
			cl.Do(from("app/1"))
			return cl.Do(from("app/2")).Replayed() && effects(s) == 1
		},
		"route-compared": func(s *mockserver.Server, cl *client) bool {
			cl.Post("a")
			cl.Post("b")
			act := func(id string) request { return request{Key: "k", Path: "/payments/" + id + "/cancel", Body: "{}"} }
			cl.Do(act("payments_1"))
			return cl.Do(act("payments_2")).Status == 422 && effects(s) == 3
		},
	}
}

func effectProbes() map[string]probe {
	slow := request{Key: "k", Path: "/payments?sleep=1000"}
	// failed: a request that fails so has no effect, nor has its repeat.
	failed := func(query string) probe {
		return func(s *mockserver.Server, cl *client) bool {
			for range 2 {
				cl.Do(request{Key: "k", Path: "/payments?" + query})
			}
			return effects(s) == 0
		}
	}
	return map[string]probe{
		"mismatch-executed-then-refused": changed(`{"amount":1}`, `{"amount":2}`),
		"duplicate-executed-then-refused": func(s *mockserver.Server, cl *client) bool {
			go cl.Do(slow)
			synctest.Wait()
			got := cl.Do(slow)
			time.Sleep(3 * time.Second)
			return got.Status == 409 && effects(s) == 1
		},
		"invalid-key-executed-then-refused": refused("a b"),
		"replay-queues-again": func(s *mockserver.Server, cl *client) bool {
			once := repeatIsOne(s, cl)
			time.Sleep(time.Second)
			return once && effects(s) == 1
		},
		"failed-after-effect":  failed("fail=500"),
		"crashed-after-effect": failed("crash=1"),
		"refused-after-effect": failed("fail=402"),
	}
}

func waitingProbes() map[string]probe {
	slow := request{Key: "k", Path: "/payments?sleep=1000"}
	// clicked: two at the same time; one effect, and both ends are good.
	clicked := func(s *mockserver.Server, cl *client) bool {
		go cl.Do(slow)
		time.Sleep(500 * time.Millisecond)
		second := cl.Do(slow)
		time.Sleep(3 * time.Second)
		waited := second.Status == 201 && second.Replayed()
		return (waited || second.Status == 409) && cl.Do(slow).Replayed() && effects(s) == 1
	}
	return map[string]probe{
		"waits-then-executes": clicked,
		"waiter-empty":        clicked,
		"lock-outlived":       clicked,
		"in-flight-mismatch":  clicked,
		"follower-frees-key": func(s *mockserver.Server, cl *client) bool {
			go cl.Do(slow)
			synctest.Wait()
			ctx, cancel := mocktest.In(100 * time.Millisecond)
			defer cancel()
			left := slow
			left.Ctx = ctx
			cl.Do(left)
			cl.Do(slow)
			time.Sleep(3 * time.Second)
			return effects(s) == 1
		},
		"retry-after-garbage": func(_ *mockserver.Server, cl *client) bool {
			go cl.Do(slow)
			synctest.Wait()
			return cl.Do(slow).Header.Get("Retry-After") == "1"
		},
	}
}

func refusalProbes() map[string]probe {
	as := func(who string) request { return request{Key: "k", Header: http.Header{"Authorization": {who}}} }
	strangers := func(a, b string) probe {
		return func(s *mockserver.Server, cl *client) bool {
			cl.Do(as(a))
			got := cl.Do(as(b))
			return got.Status == 201 && !got.Replayed() && effects(s) == 2
		}
	}
	return map[string]probe{
		"mismatch-as-in-progress": changed(`{"amount":1}`, `{"amount":2}`),
		"mismatch-swallowed":      changed(`{"amount":1}`, `{"amount":2}`),
		"principal-scheme-only":   strangers("Bearer a", "Bearer b"),
		"other-principal-refused": strangers("Bearer a", "Bearer b"),
		"get-claims-key": func(_ *mockserver.Server, cl *client) bool {
			cl.Do(request{Key: "k", Method: http.MethodGet, Path: "/payments/payments_1"})
			return cl.Post("k").Status == 201
		},
		"unauthorised-pinned": func(_ *mockserver.Server, cl *client) bool {
			failing := request{Key: "k", Path: "/payments?fail=401"}
			first, second := cl.Do(failing), cl.Do(failing)
			return first.Status == 401 && first.Body != second.Body
		},
		"error-replayed-as-200": func(_ *mockserver.Server, cl *client) bool {
			failing := request{Key: "k", Path: "/payments?fail=402"}
			first, again := cl.Do(failing), cl.Do(failing)
			return first.Status == 402 && again.Status == 402
		},
		"replay-respelled": repeatsItsBody,
		"replay-wrapped":   repeatsItsBody,
	}
}

func memoryProbes() map[string]probe {
	return map[string]probe{
		"window-slides": func(_ *mockserver.Server, cl *client) bool {
			cl.Post("k")
			time.Sleep(40 * time.Minute)
			cl.Post("k")
			time.Sleep(40 * time.Minute)
			return !cl.Post("k").Replayed()
		},
		"expired-refused": func(_ *mockserver.Server, cl *client) bool {
			cl.Post("k")
			time.Sleep(time.Hour)
			return cl.Post("k").Status == 201
		},
		"replayed-once": func(s *mockserver.Server, cl *client) bool {
			return repeatIsOne(s, cl) && cl.Post("k").Replayed() && effects(s) == 1
		},
		"large-answer-not-stored": func(s *mockserver.Server, cl *client) bool {
			cl.Do(request{Key: "k", Body: fmt.Sprintf(`{"reference":%q}`, strings.Repeat("r", 5000))})
			return cl.Do(request{Key: "k", Body: fmt.Sprintf(`{"reference":%q}`, strings.Repeat("r", 5000))}).Replayed() && effects(s) == 1
		},
		"truncated-forgets": func(s *mockserver.Server, cl *client) bool {
			cl.Post("k")
			postTruncated(cl)
			return cl.Post("k").Replayed() && effects(s) == 1
		},
		"stored-late": repeatIsOne,
	}
}

func instanceProbes() map[string]probe {
	slow := request{Key: "k", Path: "/payments?sleep=1000"}
	// killed: a restart while the first is handled; then the same once more.
	killed := func(s *mockserver.Server, cl *client) bool {
		go cl.Do(slow)
		synctest.Wait()
		s.Restart()
		return cl.Do(slow).Status == 201 && effects(s) == 1
	}
	return map[string]probe{
		"two-instances": repeatIsOne,
		"replica-lag":   repeatIsOne,
		"restart-forgets": func(s *mockserver.Server, cl *client) bool {
			cl.Post("k")
			s.Restart()
			synctest.Wait() // the client has seen that its connection is gone
			return cl.Post("k").Replayed() && effects(s) == 1
		},
		"restart-leaves-locks": killed,
		"restart-runs-again":   killed,
	}
}

// repeatsItsBody reports whether a repeat is answered with the very same bytes.
func repeatsItsBody(_ *mockserver.Server, cl *client) bool {
	first, again := cl.Post("k"), cl.Post("k")
	return first.Body == again.Body
}
