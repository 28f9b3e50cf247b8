package neighbours_test

import (
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// tenantsBy is an API whose keys belong to the account in a header.
func tenantsBy(header string) *profile.Profile {
	p := onceShop()
	p.Name, p.AccountHeaders = "tenants", []string{header}
	return p
}

// onePass makes one pass over a journal, and returns its last error.
func onePass(t *testing.T, c *oncehttp.Client) (failed error) {
	t.Helper()
	for _, err := range c.Resume(t.Context()) {
		if err != nil {
			failed = err
		}
	}
	return failed
}

// Authorize sends an operation for the account that began it or not at all, whatever it does to the header, and the lookup, too.
func TestNeighbourAuthorizeAccount(t *testing.T) {
	t.Parallel()
	changes := map[string]struct {
		change func(h http.Header, name string)
		sends  bool
	}{
		"the same":         {func(h http.Header, name string) { h.Set(name, "A") }, true},
		"another":          {func(h http.Header, name string) { h.Set(name, "B") }, false},
		"none":             {func(h http.Header, name string) { h.Del(name) }, false},
		"a second":         {func(h http.Header, name string) { h.Set(name, "A"); h.Add(name, "B") }, false},
		"another, twice":   {func(h http.Header, name string) { h.Set(name, "B"); h.Add(name, "A") }, false},
		"in another case":  {func(h http.Header, name string) { h.Set(name, "A"); h[strings.ToLower(name)] = []string{"B"} }, false},
		"an empty one":     {func(h http.Header, name string) { h.Set(name, "") }, false},
		"with white space": {func(h http.Header, name string) { h.Set(name, "A B") }, false},
	}
	for _, name := range []string{"X-Api-Key", "Authorization", "X-Tenant"} {
		for what, test := range changes {
			for _, way := range []string{"Do", "Transport", "Resume", "Resume in doubt"} {
				t.Run(name+"/"+what+"/"+way, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						change := test.change
						w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "{}"}}}
						c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
							cfg.Profile, cfg.Retry.MaxAttempts, cfg.Retry.AskFirst = tenantsBy(name), 1, true
							cfg.Authorize = func(req *http.Request) error { change(req.Header, name); return nil }
						})
						req := clienttest.Post(t, `{"reference":"r"}`)
						req.Header.Set(name, "A")
						req.Header.Set("Idempotency-Key", "k-1")
						var err error
						sends := 0
						switch way {
						case "Do":
							_, err = c.Do(req)
						case "Transport":
							_, err = c.Transport().RoundTrip(req)
						case "Resume":
							fatal(t, c.Enqueue(req, ""))
							err = onePass(t, c)
						case "Resume in doubt": // the next request is a lookup
							w.Replies = []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 200, Body: `{"data":[{"reference":"r"}]}`}}
							change = changes["the same"].change
							_, _ = c.Do(req)
							change, sends = test.change, 1
							time.Sleep(time.Hour)
							err = onePass(t, c)
						}
						if n := w.Count() - sends; (n == 1) != test.sends || (err == nil) != test.sends {
							t.Errorf("%d sends, error %v", n, err)
						}
						if !test.sends {
							clienttest.ExactlyOne(t, err)
						}
					})
				})
			}
		}
	}
}

// What a later configuration takes for a credential makes no other operation of one that stands: the same request goes on, and
// one that cannot be compared is neither sent nor said to have had no effect.
func TestNeighbourSecretsNamedLater(t *testing.T) {
	t.Parallel()
	withHeader := profile.Draft07()
	withHeader.Name, withHeader.Fingerprint = "with-header", []string{"X-Customer"}
	type change struct {
		profile                       *profile.Profile
		headers, parameters           []string // of the first life
		laterHeaders, laterParameters []string
		comparable                    bool
	}
	names := []string{"X-Customer"}
	for name, ch := range map[string]change{
		"a parameter more":         {laterParameters: []string{"customer"}, comparable: true},
		"a parameter less":         {parameters: []string{"customer"}},
		"a compared header more":   {profile: withHeader, laterHeaders: names, comparable: true},
		"a compared header less":   {profile: withHeader, headers: names},
		"an account's header more": {profile: tenantsBy("X-Customer"), laterHeaders: names, comparable: true},
		"an account's header less": {profile: tenantsBy("X-Customer"), headers: names, comparable: true},
	} {
		for _, state := range []string{"in doubt", "done", "swept", "enqueued"} {
			for _, call := range []string{"Do", "Enqueue", "Transport", "Do without a key"} {
				if call == "Do without a key" && state != "in doubt" {
					continue
				}
				t.Run(name+"/"+state+"/"+call, func(t *testing.T) {
					t.Parallel()
					w, store := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "{}"}}}, memory.New()
					life := func(headers, parameters []string) *oncehttp.Client {
						c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
							cfg.Journal, cfg.Retry.MaxAttempts, cfg.KeepAnswer = &beside{Journal: store}, 1, -1
							cfg.Profile, cfg.SecretHeaders, cfg.SecretParameters = ch.profile, headers, parameters
							cfg.Authorize = func(*http.Request) error { return nil }
						})
						return c
					}
					req := func() *http.Request {
						req := clienttest.Request(t, "POST", "https://api.example.com/payments?customer=1&via=test", `{"reference":"r"}`)
						req.Header.Set("X-Customer", "1")
						if call != "Do without a key" {
							req.Header.Set("Idempotency-Key", "k-1")
						}
						return req
					}
					first := life(ch.headers, ch.parameters)
					switch state {
					case "in doubt":
						w.Replies = []wiretest.Reply{{Err: wiretest.ErrLost}}
						if _, err := first.Do(req()); err == nil {
							t.Fatal("no doubt")
						}
					case "enqueued":
						fatal(t, first.Enqueue(req(), ""))
					default:
						_, err := first.Do(req())
						fatal(t, err)
						if state == "swept" {
							_, err := first.Sweep(t.Context())
							fatal(t, err)
						}
					}
					sends := w.Count()
					w.Replies = []wiretest.Reply{{Status: 201, Body: "{}"}}
					later := life(ch.laterHeaders, ch.laterParameters)
					var err error
					switch call {
					case "Enqueue":
						err = later.Enqueue(req(), "")
					case "Transport":
						_, err = later.Transport().RoundTrip(req())
					default:
						_, err = later.Do(req())
					}
					if err != nil {
						clienttest.ExactlyOne(t, err)
					}
					if errors.Is(err, oncehttp.ErrNoEffect) {
						t.Errorf("%v", err)
					}
					if ch.comparable && call != "Do without a key" && (errors.Is(err, oncehttp.ErrKeyReused) || errors.Is(err, oncehttp.ErrConfig)) {
						t.Errorf("%v, want that it goes on", err)
					}
					if !ch.comparable && (err == nil || w.Count() != sends) {
						t.Errorf("%d more sends, %v, want none and an error", w.Count()-sends, err)
					}
					if call == "Do without a key" && (err == nil || w.Count() != sends) {
						t.Errorf("%d more sends of the same request without a key: %v", w.Count()-sends, err)
					}
					if n := len(w.Keys()); n > 1 {
						t.Errorf("%d operations", n)
					}
					records := 0
					for _, err := range store.List(t.Context(), persist.Query{AllAccounts: true}) {
						fatal(t, err)
						records++
					}
					if records != 1 {
						t.Errorf("%d records", records)
					}
				})
			}
		}
	}
}

// A client's configuration is that of its New: what happens to the profile, lists and maps later changes nothing.
func TestNeighbourConfigCopied(t *testing.T) {
	t.Parallel()
	p := profile.Draft07()
	p.Name, p.Methods = "mine", []string{"POST"}
	p.AccountHeaders, p.Fingerprint = []string{"X-Account"}, []string{"X-Version"}
	p.InProgress = []profile.Matcher{{Status: []int{418}}}
	cfg := oncehttp.Config{
		Profile: p, ProfileByHost: map[string]*profile.Profile{"other.example.com": p.Clone()}, Methods: []string{"POST", "PATCH"},
		SecretHeaders: []string{"X-Mine"}, SecretParameters: []string{"mine"}, KeepFields: []string{"/amount"},
	}
	byHost := cfg.ProfileByHost["other.example.com"]
	w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 418}, {Status: 201, Body: "{}"}}}
	for _, host := range []string{"api.example.com", "other.example.com"} {
		w.Sends = nil
		synctest.Test(t, func(t *testing.T) {
			c, _ := clienttest.New(t, w, func(own *oncehttp.Config) {
				j, rt := own.Journal, own.Transport
				*own = cfg
				own.Journal, own.Transport = j, rt
			})
			for _, p := range []*profile.Profile{p, byHost} {
				p.Carrier.Name, p.Methods[0], p.AccountHeaders[0], p.Fingerprint[0], p.InProgress[0].Status[0] = "X-Other", "PUT", "X-None", "X-None", 499
				p.Unclear = append(p.Unclear, profile.Matcher{Status: []int{201}})
			}
			cfg.Methods[0], cfg.SecretHeaders[0], cfg.SecretParameters[0], cfg.KeepFields[0] = "GET", "X-None", "none", "/none"
			delete(cfg.ProfileByHost, "other.example.com")
			req := clienttest.Request(t, "POST", "https://"+host+"/payments?mine=1", `{"amount":1}`)
			for name, value := range map[string]string{"X-Mine": "s", "X-Account": "a", "X-Version": "1"} {
				req.Header.Set(name, value)
			}
			resp, err := c.DoKey(req, "k-1")
			if err != nil || resp.StatusCode != 201 || w.Count() != 2 || w.Keys()["k-1"] != 2 {
				t.Errorf("%s: %v, %v, keys %v", host, resp, err, w.Keys())
			}
			var rec persist.Record
			for r, err := range c.Unfinished(t.Context()) {
				t.Errorf("%v, %v is unfinished", r.ID, err)
			}
			rec, err = c.Lookup(t.Context(), "k-1")
			if err != nil || !strings.Contains(rec.ScopedAccount(), "X-Account=a") || strings.Join(rec.Omitted, " ") != "X-Mine ?mine" || len(rec.KeptFields) != 1 ||
				rec.KeptFields[0].Value != "1" || !strings.Contains(rec.Recipe, "x-version") && !strings.Contains(rec.Recipe, "X-Version") {
				t.Errorf("%s: %+v, %v", host, rec, err)
			}
		})
		// as they were
		for _, p := range []*profile.Profile{p, byHost} {
			p.Carrier.Name, p.Methods[0], p.AccountHeaders[0], p.Fingerprint[0], p.InProgress[0].Status[0], p.Unclear = "Idempotency-Key", "POST", "X-Account", "X-Version", 418, nil
		}
		cfg.Methods[0], cfg.SecretHeaders[0], cfg.SecretParameters[0], cfg.KeepFields[0] = "POST", "X-Mine", "mine", "/amount"
		cfg.ProfileByHost["other.example.com"] = byHost
	}
}

// Profiles of one name and version state one set of facts, wherever a configuration has them.
func TestNeighbourOneNameOneProfile(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(p *profile.Profile){
		"the same facts": nil, "texts": func(p *profile.Profile) { p.Title, p.Notes = "Another title", []string{"note"} },
		"a carrier": func(p *profile.Profile) { p.Carrier = profile.Carrier{Place: profile.Nowhere} },
		"a matcher": func(p *profile.Profile) { p.Unclear = []profile.Matcher{{Status: []int{420}}} },
		"methods":   func(p *profile.Profile) { p.Methods = []string{"PATCH"} },
		"a window":  func(p *profile.Profile) { p.Window.Floor = time.Hour },
		"lookups":   func(p *profile.Profile) { p.Reference = onceShop().Reference },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := onceShop(), onceShop()
			a.Reference, b.Reference = nil, nil
			if change != nil {
				change(b)
			}
			good := change == nil || name == "texts"
			for place, cfg := range map[string]oncehttp.Config{
				"Profile and a host": {Profile: a, ProfileByHost: map[string]*profile.Profile{"a.example.com": b}},
				"two hosts":          {ProfileByHost: map[string]*profile.Profile{"a.example.com": a, "b.example.com": b}},
			} {
				c, err := oncehttp.Open(filepath.Join(testrun.Dir(t), "j.db"), cfg)
				if err == nil {
					c.Close()
				}
				if (err == nil) != good || err != nil && (!errors.Is(err, oncehttp.ErrConfig) || !strings.Contains(err.Error(), "shop")) {
					t.Errorf("%s: %v", place, err)
				}
			}
		})
	}
}

// Whether a key protects an operation was frozen with it: after a crash no other profile of its name sends it again.
func TestNeighbourFrozenProtection(t *testing.T) {
	t.Parallel()
	keyless := profile.None()
	keyless.Name, keyless.Version = "mine", "1"
	keyed := profile.Draft07()
	keyed.Name, keyed.Version, keyed.Methods = "mine", "1", nil
	for _, way := range []string{"Resume", "Do", "Transport"} {
		for _, where := range []string{"Profile", "ProfileByHost", "ProfileOf"} {
			t.Run(way+"/"+where, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					store := memory.New()
					stuck := make(chan struct{})
					w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "{}"}}, Before: func(int, *http.Request) { <-stuck }}
					dead, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Journal, cfg.Profile = &beside{Journal: store}, keyless })
					over := make(chan struct{})
					go func() { // the process that dies while it sends
						defer close(over)
						_, _ = dead.DoKey(clienttest.Post(t, "{}"), "k-1")
					}()
					time.Sleep(time.Second)
					next := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "{}"}}}
					c, _ := clienttest.New(t, next, func(cfg *oncehttp.Config) {
						cfg.Journal = &beside{Journal: store}
						switch where {
						case "Profile":
							cfg.Profile = keyed
						case "ProfileByHost":
							cfg.ProfileByHost = map[string]*profile.Profile{"api.example.com": keyed}
						case "ProfileOf":
							cfg.ProfileOf = func(persist.Record) *profile.Profile { return keyed }
						}
					})
					time.Sleep(time.Hour)
					var err error
					switch way {
					case "Resume":
						err = onePass(t, c)
					case "Do":
						_, err = c.DoKey(clienttest.Post(t, "{}"), "k-1")
					case "Transport":
						req := clienttest.Post(t, "{}")
						req.Header.Set("Idempotency-Key", "k-1")
						_, err = c.Transport().RoundTrip(req)
					}
					if next.Count() != 0 || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
						t.Errorf("%d second sends, %v", next.Count(), err)
					}
					close(stuck)
					<-over
				})
			})
		}
	}
}
