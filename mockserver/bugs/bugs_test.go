package bugs_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/mockserver/bugs"
	"github.com/oncehttp/oncehttp/mockserver/internal/mocktest"
)

// probe asks a server one thing and reports whether it behaves.
type probe func(*mockserver.Server, *client) bool

// Every bug is visible to its probe, and the correct server passes all of them.
func TestBugs(t *testing.T) {
	t.Parallel()
	probes := bugProbes()
	var names []string
	for _, bug := range bugs.All() {
		names = append(names, bug.Name)
		t.Run(bug.Name, func(t *testing.T) {
			t.Parallel()
			ask, known := probes[bug.Name]
			if !known {
				t.Fatal("no probe for this bug")
			}
			said := map[string]string{}
			for name, want := range map[string]bool{"": true, bug.Name: false} {
				mocktest.Bubble(t, mockserver.Config{Window: time.Hour, Bug: name}, func(s *mockserver.Server, cl *client) {
					answers := &recording{inner: cl.HTTP.Transport}
					cl.HTTP.Transport = answers
					defer func() { said[name] = answers.text() }()
					if got := ask(s, cl); got != want {
						t.Errorf("bug %q behaves: got %v, want %v", name, got, want)
					}
					synctest.Wait()
				})
			}
			if !bug.Hidden && said[""] == said[bug.Name] {
				t.Errorf("the answers are those of a correct server, and it is not said to be hidden:\n%s", said[""])
			}
			if !strings.HasSuffix(bug.Description, ".") || !strings.HasSuffix(bug.Impact, ".") {
				t.Errorf("a bug needs a description and an impact, one sentence each: %q, %q", bug.Description, bug.Impact)
			}
		})
	}
	if len(names) < 90 {
		t.Errorf("got %d bugs, want at least 90", len(names))
	}
	slices.Sort(names)
	if len(slices.Compact(names)) != len(bugs.All()) || len(probes) != len(names) {
		t.Errorf("%d names and %d probes for %d bugs", len(names), len(probes), len(bugs.All()))
	}
}

// recording keeps what each request was answered, but for its date.
type recording struct {
	inner http.RoundTripper
	mu    sync.Mutex
	lines []string
}

func (r *recording) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := r.inner.RoundTrip(req)
	line := "no answer"
	if err == nil {
		response.Header.Del("Date")
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		response.Body = io.NopCloser(bytes.NewReader(body))
		line = fmt.Sprint(response.StatusCode, response.Header, string(body))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
	return response, err
}

// text is all of it, in an order that does not depend on who was first.
func (r *recording) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.Sort(r.lines)
	return strings.Join(r.lines, "\n")
}

func bugProbes() map[string]probe {
	all := map[string]probe{}
	for _, some := range []map[string]probe{keyProbes(), scopeProbes(), flightProbes(), hangUpProbes(), failureProbes(), replayProbes(),
		readProbes(), protectionProbes(), fingerprintProbes(), effectProbes(), waitingProbes(), refusalProbes(), memoryProbes(), instanceProbes()} {
		for name, ask := range some {
			all[name] = ask
		}
	}
	return all
}

// effects counts all of a server.
func effects(s *mockserver.Server) int { return s.Ledger().Snapshot().Effects }

// repeatIsOne: the same request twice has one effect.
func repeatIsOne(s *mockserver.Server, cl *client) bool {
	return cl.Post("k").Status == 201 && cl.Post("k").Replayed() && effects(s) == 1
}

// distinct: two keys are two operations.
func distinct(a, b string) probe {
	return func(_ *mockserver.Server, cl *client) bool {
		return cl.Post(a).Status == 201 && !cl.Post(b).Replayed()
	}
}

// refused: a key header that is no good is answered 4xx and executes nothing.
func refused(values ...string) probe {
	return func(s *mockserver.Server, cl *client) bool {
		got := cl.Do(request{Header: http.Header{"Idempotency-Key": values}})
		return got.Status == 400 && effects(s) == 0
	}
}

func keyProbes() map[string]probe {
	long := strings.Repeat("k", 100)
	return map[string]probe{
		"keys-ignored":         repeatIsOne,
		"other-header-name":    repeatIsOne,
		"key-truncated":        distinct(long+"a", long+"b"),
		"key-folded":           distinct("Key", "kEY"),
		"key-trimmed":          distinct("key", "key."),
		"key-normalised":       distinct("a:b", "a-b"),
		"two-lines-first-wins": refused("a", "b"),
		"empty-key-shared":     refused(""),
		"keyless-merged": func(s *mockserver.Server, cl *client) bool {
			cl.Post("")
			cl.Do(request{Header: http.Header{"Authorization": {"stranger"}}})
			return effects(s) == 2
		},
		"quoted-key-500":            func(_ *mockserver.Server, cl *client) bool { return cl.Post(`"abc"`).Status == 201 },
		"malformed-quotes-accepted": refused(`"abc`),
		"parameters-in-key": func(_ *mockserver.Server, cl *client) bool {
			return cl.Post(`"abc";v=1`).Status == 201 && cl.Post(`"abc";v=2`).Replayed()
		},
		"invalid-key-500":      refused("a b"),
		"invalid-key-executed": refused("a b"),
		"long-key-accepted":    refused(strings.Repeat("k", 5000)),
	}
}

func scopeProbes() map[string]probe {
	changed := request{Key: "k", Body: `{"reference":"r2"}`}
	mismatch := func(other request, want func(*mockserver.Server, reply) bool) probe {
		return func(s *mockserver.Server, cl *client) bool {
			cl.Post("k")
			got := cl.Do(other)
			return want(s, got) && cl.Post("k").Replayed()
		}
	}
	is422 := func(s *mockserver.Server, r reply) bool { return r.Status == 422 && effects(s) == 1 }
	return map[string]probe{
		"mismatch-silent":   mismatch(changed, is422),
		"mismatch-executed": mismatch(changed, is422),
		"mismatch-replaces": mismatch(changed, is422),
		"mismatch-500":      mismatch(changed, is422),
		"mismatch-bare": mismatch(changed, func(_ *mockserver.Server, r reply) bool {
			return r.Header.Get("Content-Type") == "application/problem+json" && r.Header.Get("Link") != ""
		}),
		"mismatch-leaks": mismatch(changed, func(_ *mockserver.Server, r reply) bool { return !strings.Contains(r.Body, "payments_1") }),
		"mismatch-in-flight-executed": func(s *mockserver.Server, cl *client) bool {
			go cl.Do(request{Key: "k", Path: "/payments?sleep=1000"})
			synctest.Wait()
			got := cl.Do(request{Key: "k", Path: "/payments?sleep=1000", Body: `{"x":1}`})
			time.Sleep(2 * time.Second)
			return got.Status == 422 && effects(s) == 1
		},
		"other-path-answered":   mismatch(request{Key: "k", Path: "/refunds"}, is422),
		"other-method-answered": mismatch(request{Key: "k", Method: http.MethodPatch, Body: `{"reference":"r1","amount":100}`}, is422),
		"other-query-answered":  mismatch(request{Key: "k", Path: "/payments?a=1"}, is422),
		"other-principal-answered": func(s *mockserver.Server, cl *client) bool {
			cl.Post("k")
			return !cl.Do(request{Key: "k", Header: http.Header{"Authorization": {"b"}}}).Replayed() && effects(s) == 2
		},
		"connection-scoped": func(s *mockserver.Server, cl *client) bool {
			s.Inject(mockserver.Fault{Kind: mockserver.DropAfter})
			cl.Post("k")
			return cl.Post("k").Replayed() && effects(s) == 1
		},
		"chunked-differs": func(_ *mockserver.Server, cl *client) bool {
			cl.Post("k")
			return cl.Do(request{Key: "k", Chunked: true}).Replayed()
		},
		"fresh-key-refused": func(s *mockserver.Server, cl *client) bool {
			return cl.Post("a").Status == 201 && cl.Post("b").Status == 201 && effects(s) == 2
		},
		"get-answered": func(_ *mockserver.Server, cl *client) bool {
			cl.Post("k")
			return cl.Do(request{Key: "k", Method: http.MethodGet, Path: "/nothing"}).Status == 404
		},
	}
}

func flightProbes() map[string]probe {
	slow := request{Key: "k", Path: "/payments?sleep=1000"}
	// duplicate: while the first is handled a second comes; then what follows.
	duplicate := func(want func(s *mockserver.Server, second, after reply) bool) probe {
		return func(s *mockserver.Server, cl *client) bool {
			go cl.Do(slow)
			synctest.Wait()
			ctx, cancel := mocktest.In(500 * time.Millisecond)
			defer cancel()
			asked := slow
			asked.Ctx = ctx
			second := cl.Do(asked)
			time.Sleep(2 * time.Second)
			return want(s, second, cl.Do(slow))
		}
	}
	clean := func(s *mockserver.Server, second, after reply) bool {
		return second.Status == 409 && after.Status == 201 && after.Replayed() && effects(s) == 1
	}
	return map[string]probe{
		"no-exclusion":          duplicate(clean),
		"in-flight-stored":      duplicate(clean),
		"stuck-after-duplicate": duplicate(clean),
		"in-flight-500":         duplicate(clean),
		"in-flight-200":         duplicate(clean),
		"in-flight-hangs":       duplicate(clean),
		"retry-after-absurd": duplicate(func(_ *mockserver.Server, second, _ reply) bool {
			return second.Header.Get("Retry-After") == "1"
		}),
		"retry-after-missing": duplicate(func(_ *mockserver.Server, second, _ reply) bool {
			return second.Header.Get("Retry-After") != ""
		}),
		"burst-race": func(s *mockserver.Server, cl *client) bool {
			for range 8 {
				go cl.Post("k")
			}
			time.Sleep(time.Second)
			return effects(s) == 1
		},
	}
}

func hangUpProbes() map[string]probe {
	slow := request{Key: "k", Path: "/payments?sleep=1000"}
	abort := func(s *mockserver.Server, cl *client) bool {
		ctx, cancel := mocktest.In(500 * time.Millisecond)
		defer cancel()
		asked := slow
		asked.Ctx = ctx
		cl.Do(asked)
		time.Sleep(2 * time.Second)
		return cl.Do(slow).Status == 201 && effects(s) == 1
	}
	return map[string]probe{
		"stuck-after-abort": abort,
		"released-on-abort": abort,
		"stored-after-write": func(s *mockserver.Server, cl *client) bool {
			s.Inject(mockserver.Fault{Kind: mockserver.DropAfter})
			cl.Post("k")
			return cl.Post("k").Replayed() && effects(s) == 1
		},
		"truncated-claims": func(s *mockserver.Server, cl *client) bool {
			postTruncated(cl)
			return cl.Post("k").Status == 201
		},
	}
}

func failureProbes() map[string]probe {
	// again: a request that fails so, and the same one once more.
	again := func(query string, want func(first, second reply) bool) probe {
		return func(_ *mockserver.Server, cl *client) bool {
			failing := request{Key: "k", Path: "/payments?" + query}
			return want(cl.Do(failing), cl.Do(failing))
		}
	}
	rerun := func(status int) func(reply, reply) bool {
		return func(first, second reply) bool { return second.Status == status && second.Body != first.Body }
	}
	stored := func(first, second reply) bool { return second.Status == 402 && second.Body == first.Body }
	return map[string]probe{
		"stuck-after-500":   again("fail=500", rerun(500)),
		"stuck-after-4xx":   again("fail=402", stored),
		"stuck-after-crash": again("crash=1", func(_, second reply) bool { return second.Status == 500 }),
		"error-5xx-stored":  again("fail=500", rerun(500)),
		"error-5xx-poisons": again("fail=500", rerun(500)),
		"error-4xx-rerun":   again("fail=402", stored),
		"transient-pinned":  again("fail=503", rerun(503)),
	}
}

func replayProbes() map[string]probe {
	second := func(want func(first, second reply) bool) probe {
		return func(_ *mockserver.Server, cl *client) bool { return want(cl.Post("k"), cl.Post("k")) }
	}
	same := func(header string) probe {
		return second(func(a, b reply) bool { return a.Header.Get(header) == b.Header.Get(header) })
	}
	return map[string]probe{
		"replay-rejected":       repeatIsOne,
		"replay-executes":       repeatIsOne,
		"replay-loses-status":   second(func(a, b reply) bool { return a.Status == b.Status }),
		"replay-loses-body":     second(func(a, b reply) bool { return a.Body == b.Body }),
		"replay-cuts-body":      second(func(a, b reply) bool { return a.Body == b.Body }),
		"replay-loses-type":     same("Content-Type"),
		"replay-loses-location": same("Location"),
		"replay-gives-cookie":   second(func(_, b reply) bool { return b.Header.Get("Set-Cookie") == "" }),
		"first-marked":          second(func(a, b reply) bool { return !a.Replayed() && b.Replayed() }),
		"store-too-small": func(_ *mockserver.Server, cl *client) bool {
			for i := range 100 {
				cl.Post(fmt.Sprintf("k%d", i))
			}
			return cl.Post("k0").Replayed()
		},
		"expires-early": func(_ *mockserver.Server, cl *client) bool {
			cl.Post("k")
			time.Sleep(time.Hour - time.Second)
			return cl.Post("k").Replayed()
		},
		"never-expires": func(_ *mockserver.Server, cl *client) bool {
			cl.Post("k")
			time.Sleep(time.Hour)
			return !cl.Post("k").Replayed()
		},
	}
}
