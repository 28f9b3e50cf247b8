package neighbours_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// credentialKind is a way to say who sends. The second of mine is the same caller's, signed anew.
type credentialKind struct {
	name         string
	mine, theirs []func(*http.Request)
}

func header(name, value string) func(*http.Request) {
	return func(req *http.Request) { req.Header.Set(name, value) }
}

func query(text string) func(*http.Request) {
	return func(req *http.Request) { req.URL.RawQuery += "&" + text }
}

func credentialKinds() []credentialKind {
	type f = func(*http.Request)
	auth := func(value string) f { return header("Authorization", value) }
	aws := func(id, date, sig string) string {
		return "AWS4-HMAC-SHA256 Credential=" + id + "/" + date + "/eu-west-1/execute-api/aws4_request, SignedHeaders=host;x-amz-date, Signature=" + sig
	}
	digest := func(user, nonce, response string) string {
		return `Digest username="` + user + `", realm="api", nonce="` + nonce + `", uri="/payments?via=test", nc=00000001, cnonce="` + nonce + `", qop=auth, response="` + response + `"`
	}
	oauth := func(consumer, nonce, sig string) string {
		return `OAuth oauth_consumer_key="` + consumer + `", oauth_token="t-` + consumer + `", oauth_signature_method="HMAC-SHA1", oauth_timestamp="1` + nonce + `", oauth_nonce="` + nonce + `", oauth_signature="` + sig + `"`
	}
	message := func(id, created, sig string) f {
		return func(req *http.Request) {
			req.Header.Set("Signature-Input", `sig1=("@method" "@target-uri");created=`+created+`;nonce="n`+created+`";keyid="`+id+`"`)
			req.Header.Set("Signature", "sig1=:"+sig+":")
		}
	}
	cavage := func(id, sig string) f {
		return header("Authorization", `Signature keyId="`+id+`",algorithm="hs2019",headers="(request-target) date",signature="`+sig+`"`)
	}
	return []credentialKind{
		{"bearer", []f{auth("Bearer alice-1"), auth("Bearer alice-1")}, []f{auth("Bearer bob-1")}},
		{"basic", []f{auth("Basic YWxpY2U6eA=="), auth("Basic YWxpY2U6eA==")}, []f{auth("Basic Ym9iOng=")}},
		{"a header of the API's own", []f{header("X-Api-Key", "a"), header("X-Api-Key", "a")}, []f{header("X-Api-Key", "b")}},
		{"a header that the configuration names", []f{header("X-Customer", "a"), header("X-Customer", "a")}, []f{header("X-Customer", "b")}},
		{"a session cookie", []f{header("Cookie", "sessionid=a; _ga=1"), header("Cookie", "_ga=2; sessionid=a")}, []f{header("Cookie", "sessionid=b; _ga=1")}},
		{"a parameter", []f{query("api_key=a"), query("api_key=a")}, []f{query("api_key=b")}},
		{"userinfo", []f{func(r *http.Request) { r.URL.User = url.UserPassword("a", "pw") }, func(r *http.Request) { r.URL.User = url.UserPassword("a", "pw") }},
			[]f{func(r *http.Request) { r.URL.User = url.UserPassword("b", "pw") }}},
		{"SigV4", []f{auth(aws("AKIAA", "20261122", "aa")), auth(aws("AKIAA", "20261123", "ab"))}, []f{auth(aws("AKIAB", "20261122", "aa"))}},
		{"Digest", []f{auth(digest("alice", "1", "aa")), auth(digest("alice", "2", "ab"))}, []f{auth(digest("bob", "1", "aa"))}},
		{"OAuth 1", []f{auth(oauth("alice", "1", "aa")), auth(oauth("alice", "2", "ab"))}, []f{auth(oauth("bob", "1", "aa"))}},
		{"a message signature", []f{message("alice", "1", "YQ=="), message("alice", "2", "Yg==")}, []f{message("bob", "1", "YQ==")}},
		{"an older message signature", []f{cavage("alice", "YQ=="), cavage("alice", "Yg==")}, []f{cavage("bob", "YQ==")}},
		{"two, of which one differs", []f{both(auth("Bearer gateway"), header("X-Api-Key", "a")), both(auth("Bearer gateway"), header("X-Api-Key", "a"))},
			[]f{both(auth("Bearer gateway"), header("X-Api-Key", "b"))}},
	}
}

func both(a, b func(*http.Request)) func(*http.Request) {
	return func(req *http.Request) { a(req); b(req) }
}

// strangersCall is a call that another caller makes with the key of an operation.
var strangersCalls = map[string]func(t *testing.T, c *oncehttp.Client, req *http.Request) error{
	"Do": func(_ *testing.T, c *oncehttp.Client, req *http.Request) error {
		_, err := c.DoKey(req, "k-1")
		return err
	},
	"Do of other content": func(t *testing.T, c *oncehttp.Client, req *http.Request) error {
		other := clienttest.Post(t, "[]")
		other.Header, other.URL = req.Header, req.URL
		_, err := c.DoKey(other, "k-1")
		return err
	},
	"Do of too much": func(t *testing.T, c *oncehttp.Client, req *http.Request) error {
		other := clienttest.Post(t, strings.Repeat(" ", 11<<20))
		other.Header, other.URL = req.Header, req.URL
		_, err := c.DoKey(other, "k-1")
		return err
	},
	"Do with an ended context": func(t *testing.T, c *oncehttp.Client, req *http.Request) error {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := c.DoKey(req.WithContext(ctx), "k-1")
		return err
	},
	"Transport": func(_ *testing.T, c *oncehttp.Client, req *http.Request) error {
		req.Header.Set("Idempotency-Key", "k-1")
		_, err := c.Transport().RoundTrip(req)
		return err
	},
	"Enqueue": func(_ *testing.T, c *oncehttp.Client, req *http.Request) error { return c.Enqueue(req, "k-1") },
}

// learnsNothing checks what a caller is told of an operation that may be another's.
func learnsNothing(t *testing.T, call string, err error, key string) oncehttp.Key {
	t.Helper()
	var e *oncehttp.Error
	if !errors.Is(err, oncehttp.ErrAccount) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.As(err, &e) {
		t.Errorf("%s: %v, want ErrAccount", call, err)
		return ""
	}
	clienttest.ExactlyOne(t, err)
	if e.Key != "" || e.State != persist.StatePending || e.Answer != nil || e.Effect() != oncehttp.EffectUnknown || e.Reference == "" || !e.NextAttempt.IsZero() {
		t.Errorf("%s: %+v tells of the operation", call, e)
	}
	begun := !errors.Is(err, context.Canceled) && !errors.Is(err, oncehttp.ErrBodyTooLarge) // else that is the line's end
	if strings.Contains(err.Error(), key) || begun && !strings.Contains(err.Error(), "Config.Account") && !strings.Contains(err.Error(), "Client.Assign") {
		t.Errorf("%s: %q holds the key, or does not say what to do", call, err)
	}
	return oncehttp.Key(e.Reference)
}

// Whose an operation is decides before all else: other credentials of the same name learn, join and send nothing, in any
// state and by any call; the same caller goes on, however the request is signed.
func TestNeighbourCredentials(t *testing.T) {
	t.Parallel()
	states := map[string][]wiretest.Reply{
		"done": {{Status: 201, Body: "{}"}}, "in doubt": {{Err: wiretest.ErrLost}}, "refused": {{Status: 402, Body: "{}"}},
		"held": {{Status: 302, Header: "Location: https://other.example.com/"}},
	}
	for _, kind := range credentialKinds() {
		for state, replies := range states {
			t.Run(kind.name+"/"+state, func(t *testing.T) {
				t.Parallel()
				w, store := &wiretest.Wire{Replies: replies}, memory.New()
				life := func() *oncehttp.Client { // each of another process
					c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
						cfg.Journal, cfg.Retry.MaxAttempts, cfg.SecretHeaders = &beside{Journal: store}, 1, []string{"X-Customer"}
						cfg.Authorize = func(*http.Request) error { return nil }
					})
					return c
				}
				with := func(set func(*http.Request)) *http.Request {
					req := clienttest.Post(t, "{}")
					set(req)
					return req
				}
				first := life()
				_, _ = first.DoKey(with(kind.mine[0]), "k-1")
				sends := w.Count()
				if sends != 1 {
					t.Fatalf("%d sends", sends)
				}
				var reference oncehttp.Key
				for _, c := range []*oncehttp.Client{first, life()} {
					for call, do := range strangersCalls {
						reference = learnsNothing(t, call, do(t, c, with(kind.theirs[0])), "k-1")
					}
				}
				if n := w.Count(); n != sends {
					t.Errorf("%d more sends", n-sends)
				}
				_, err := life().DoKey(with(kind.mine[1]), "k-1")
				if errors.Is(err, oncehttp.ErrAccount) || errors.Is(err, oncehttp.ErrKeyReused) {
					t.Errorf("the same caller: %v", err)
				}
				if state == "in doubt" {
					if err := life().Settle(t.Context(), reference, oncehttp.Resolution{Effect: oncehttp.EffectHappened}); err != nil {
						t.Errorf("Settle by the reference: %v", err)
					}
				}
			})
		}
	}
}

// A request without a key is no stranger's, either: the same bytes of another caller do not go on with it, nor learn its key.
func TestNeighbourCredentialsWithoutKey(t *testing.T) {
	t.Parallel()
	for _, kind := range credentialKinds() {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}
			c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
				cfg.Retry.MaxAttempts, cfg.SecretHeaders = 1, []string{"X-Customer"}
			})
			with := func(set func(*http.Request)) *http.Request {
				req := clienttest.Post(t, "{}")
				set(req)
				return req
			}
			var first *oncehttp.Error
			if _, err := c.Do(with(kind.mine[0])); !errors.As(err, &first) {
				t.Fatal(err)
			}
			_, err := c.Do(with(kind.theirs[0]))
			learnsNothing(t, "Do", err, string(first.Key))
			_, err = c.Do(with(func(*http.Request) {}))
			learnsNothing(t, "Do without credentials", err, string(first.Key))
			_, err = c.Do(with(header("X-Auth-Token", "z")))
			learnsNothing(t, "Do with others", err, string(first.Key))
			var mine *oncehttp.Error
			if _, err := c.Do(with(kind.mine[1])); !errors.As(err, &mine) || mine.Key != first.Key || errors.Is(err, oncehttp.ErrAccount) {
				t.Errorf("the same caller: %v, want the key %s", err, first.Key)
			}
			_, err = c.DoKey(with(func(*http.Request) {}), first.Key)
			learnsNothing(t, "DoKey of a generated key without credentials", err, string(first.Key))
			if w.Count() != 1 {
				t.Errorf("%d sends", w.Count())
			}
		})
	}
}

// Where one caller has credentials and the other none, or none of one name, a key that the caller chose goes on.
func TestNeighbourCredentialsUnclear(t *testing.T) {
	t.Parallel()
	bearer, none := header("Authorization", "Bearer a"), func(*http.Request) {}
	for name, sets := range map[string][2]func(*http.Request){
		"some, then none": {bearer, none}, "none, then some": {none, bearer}, "of two names": {bearer, header("X-Api-Key", "a")}, "neither": {none, none},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201, Body: "{}"}}}
			c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Retry.MaxAttempts = 1 })
			for i, set := range sets {
				req := clienttest.Post(t, "{}")
				set(req)
				if _, err := c.DoKey(req, "k-1"); errors.Is(err, oncehttp.ErrAccount) || i == 1 && err != nil {
					t.Errorf("call %d: %v", i, err)
				}
			}
			if w.Count() != 2 || len(w.Keys()) != 1 {
				t.Errorf("%d sends, keys %v", w.Count(), w.Keys())
			}
		})
	}
}

// Who would join a call that is under way is asked for the same credentials first.
func TestNeighbourCredentialsJoin(t *testing.T) {
	t.Parallel()
	for call, do := range strangersCalls {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "{}", Delay: 10 * time.Second}}}, func(cfg *oncehttp.Config) {
					cfg.Authorize = func(*http.Request) error { return nil }
				})
				ended := make(chan error, 1)
				alice := clienttest.Post(t, "{}")
				alice.Header.Set("Authorization", "Bearer a")
				go func() {
					_, err := c.DoKey(alice, "k-1")
					ended <- err
				}()
				time.Sleep(time.Second)
				bob := clienttest.Post(t, "{}")
				bob.Header.Set("Authorization", "Bearer b")
				began := time.Now()
				learnsNothing(t, call, do(t, c, bob), "k-1")
				if took := time.Since(began); took > 0 {
					t.Errorf("it waited %v for the other's call", took)
				}
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// What stands under no account stands in the way of each call that names one, whatever became of it, until it is assigned.
func TestNeighbourFromNone(t *testing.T) {
	t.Parallel()
	done, lost := wiretest.Reply{Status: 201, Body: "{}"}, wiretest.Reply{Err: wiretest.ErrLost}
	for state, reach := range map[string]func(t *testing.T, c *oncehttp.Client, w *wiretest.Wire){
		"enqueued": func(t *testing.T, c *oncehttp.Client, _ *wiretest.Wire) {
			fatal(t, c.Enqueue(clienttest.Post(t, "{}"), "k-1"))
		},
		"in doubt": func(t *testing.T, c *oncehttp.Client, w *wiretest.Wire) { doWith(t, c, w, lost) },
		"done":     func(t *testing.T, c *oncehttp.Client, w *wiretest.Wire) { doWith(t, c, w, done) },
		"remembered": func(t *testing.T, c *oncehttp.Client, w *wiretest.Wire) {
			doWith(t, c, w, done)
			_, err := c.Sweep(t.Context())
			fatal(t, err)
		},
		"abandoned": func(t *testing.T, c *oncehttp.Client, w *wiretest.Wire) {
			doWith(t, c, w, lost)
			fatal(t, c.Abandon(t.Context(), "k-1"))
		},
		"settled as happened": func(t *testing.T, c *oncehttp.Client, w *wiretest.Wire) {
			doWith(t, c, w, lost)
			fatal(t, c.Settle(t.Context(), "k-1", oncehttp.Resolution{Effect: oncehttp.EffectHappened}))
		},
	} {
		for _, engine := range []string{"memory", "bolt"} {
			for _, names := range []string{"Config.Account", "ContextWithAccount"} {
				t.Run(state+"/"+engine+"/"+names, func(t *testing.T) {
					t.Parallel()
					w, j := &wiretest.Wire{}, journalOf(t, engine)
					life := func(account string) *oncehttp.Client {
						c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
							cfg.Journal, cfg.Retry.MaxAttempts, cfg.KeepAnswer, cfg.Account = j, 1, -1, account
							cfg.Authorize = func(*http.Request) error { return nil }
						})
						return c
					}
					none := life("")
					reach(t, none, w)
					was := clienttest.Lookup(t, none, "k-1")
					sends, c, ctx := w.Count(), none, t.Context()
					if names == "Config.Account" {
						c = life("a")
					} else {
						ctx = oncehttp.ContextWithAccount(ctx, "a")
					}
					var reference oncehttp.Key
					for call, do := range strangersCalls {
						if call == "Do with an ended context" { // its context has no account
							continue
						}
						req := clienttest.Post(t, "{}").WithContext(ctx)
						req.Header.Set("Authorization", "Bearer a")
						if strings.HasPrefix(call, "Do of") && names == "ContextWithAccount" {
							continue
						}
						reference = learnsNothing(t, call, do(t, c, req), "k-1")
					}
					if w.Count() != sends {
						t.Errorf("%d more sends", w.Count()-sends)
					}
					fatal(t, c.Assign(ctx, reference))
					rec, err := c.Lookup(ctx, "k-1")
					if err != nil || rec.State != was.State || rec.Sends != was.Sends || rec.Seq != was.Seq || !rec.FirstSent.Equal(was.FirstSent) {
						t.Errorf("assigned: %+v, %v", rec, err)
					}
					w.Replies = []wiretest.Reply{done}
					_, err = c.DoKey(clienttest.Post(t, "{}").WithContext(ctx), "k-1")
					if errors.Is(err, oncehttp.ErrAccount) || len(w.Keys()) > 1 {
						t.Errorf("afterwards: %v, keys %v", err, w.Keys())
					}
					before := w.Count()
					if _, err := none.DoKey(clienttest.Post(t, "[1]"), "k-1"); err != nil || w.Count() != before+1 {
						t.Errorf("the key under none is not free: %v", err)
					}
				})
			}
		}
	}
}

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func doWith(t *testing.T, c *oncehttp.Client, w *wiretest.Wire, r wiretest.Reply) {
	t.Helper()
	w.Replies = []wiretest.Reply{r}
	if _, err := c.DoKey(clienttest.Post(t, "{}"), "k-1"); (err == nil) != (r.Err == nil) {
		t.Fatal(err)
	}
}
