package oncehttp_test

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// TestConfigIsCopied: whatever a caller changes in the values that it configured a client with, also behind pointers and in
// lists, the client goes on as before: one key in one header is one effect.
func TestConfigIsCopied(t *testing.T) {
	t.Parallel()
	for name, where := range map[string]struct{ set, change func(cfg *oncehttp.Config) }{
		"the carrier": {nil, func(cfg *oncehttp.Config) { cfg.Profile.Carrier.Name = "X-Request-Id" }},
		"a host's carrier": {
			func(cfg *oncehttp.Config) {
				cfg.ProfileByHost, cfg.Profile = map[string]*profile.Profile{"api.example.com": cfg.Profile}, nil
			},
			func(cfg *oncehttp.Config) { cfg.ProfileByHost["api.example.com"].Carrier.Name = "X-Request-Id" },
		},
		"the map of hosts": {
			func(cfg *oncehttp.Config) {
				cfg.ProfileByHost = map[string]*profile.Profile{"api.example.com": cfg.Profile}
			},
			func(cfg *oncehttp.Config) { cfg.ProfileByHost["api.example.com"] = profile.None() },
		},
		"a status of a matcher": {
			func(cfg *oncehttp.Config) { cfg.Profile.AlreadyDone = []profile.Matcher{{Status: []int{503}}} },
			func(cfg *oncehttp.Config) { cfg.Profile.AlreadyDone[0].Status[0] = 599 },
		},
		"compared headers": {
			func(cfg *oncehttp.Config) { cfg.Profile.Fingerprint = []string{"X-Version"} },
			func(cfg *oncehttp.Config) { cfg.Profile.Fingerprint[0] = "X-Other" },
		},
		"methods":           {func(cfg *oncehttp.Config) { cfg.Methods = []string{"POST"} }, func(cfg *oncehttp.Config) { cfg.Methods[0] = "PUT" }},
		"honoured":          {func(cfg *oncehttp.Config) { cfg.KeyHonoured = []string{"POST /p/{id}"} }, func(cfg *oncehttp.Config) { cfg.KeyHonoured[0] = "PUT /p" }},
		"secret headers":    {func(cfg *oncehttp.Config) { cfg.SecretHeaders = []string{"X-Pan"} }, func(cfg *oncehttp.Config) { cfg.SecretHeaders[0] = "X-Other" }},
		"secret parameters": {func(cfg *oncehttp.Config) { cfg.SecretParameters = []string{"pan"} }, func(cfg *oncehttp.Config) { cfg.SecretParameters[0] = "other" }},
		"origins":           {func(cfg *oncehttp.Config) { cfg.Origins = []string{"https://api.example.com"} }, func(cfg *oncehttp.Config) { cfg.Origins[0] = "https://other.example" }},
		"dropped members":   {func(cfg *oncehttp.Config) { cfg.DropAnswer = []string{"/secret"} }, func(cfg *oncehttp.Config) { cfg.DropAnswer[0] = "wrong" }},
		"kept fields":       {func(cfg *oncehttp.Config) { cfg.KeepFields = []string{"/amount"} }, func(cfg *oncehttp.Config) { cfg.KeepFields[0] = "/other" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cfg := oncehttp.Config{
					Journal: memory.New(), Transport: &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, Profile: clienttest.OwnProfile(),
					Origins: clienttest.Origins(), Authorize: func(*http.Request) error { return nil },
				}
				if where.set != nil {
					where.set(&cfg)
				}
				c, err := oncehttp.New(cfg)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				before := recordOf(t, c)
				where.change(&cfg)
				after := recordOf(t, c)
				if after.Created = before.Created; !reflect.DeepEqual(before, after) {
					t.Errorf("an operation was %+v, and is %+v", before, after)
				}
				if !journals(t, c) {
					t.Error("a POST is no operation any more")
				}
			})
		})
	}
}

// recordOf returns the record of one and the same request.
func recordOf(t *testing.T, c *oncehttp.Client) persist.Record {
	t.Helper()
	req := clienttest.Request(t, "POST", "https://api.example.com/payments?pan=4111", `{"amount":1}`)
	req.Header.Set("X-Version", "1")
	req.Header.Set("X-Pan", "4111")
	rec, err := c.Prepare(req, "k")
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// journals reports whether a POST without a key is an operation.
func journals(t *testing.T, c *oncehttp.Client) bool {
	t.Helper()
	resp, err := c.Do(clienttest.Post(t, "{}"))
	return err == nil && oncehttp.ResultOf(resp).Key != ""
}

// TestProfileOfTwoClients: a profile that is changed for a second client leaves the first one's key in its header, so that
// the server takes both of its sends for one.
func TestProfileOfTwoClients(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := clienttest.OwnProfile()
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
		w.Before = func(n int, _ *http.Request) {
			if n > 0 {
				return
			}
			p.Name, p.Carrier.Name = "second", "X-Request-Id"
			clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Profile = p })
		}
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Profile = p })
		for _, key := range []oncehttp.Key{"k", "k2"} {
			if _, err := c.DoKey(clienttest.Post(t, "{}"), key); err != nil {
				t.Error(err)
			}
		}
		if keys := w.Keys(); keys["k"] != 2 || keys["k2"] != 1 {
			t.Errorf("sent under %v, want k twice and k2", keys)
		}
	})
}

// TestMatcherIsCopied: a matcher that is changed after New does not change how answers are read.
func TestMatcherIsCopied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := clienttest.OwnProfile()
		p.AlreadyDone = []profile.Matcher{{Status: []int{503}}}
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 503}}}
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Profile = p })
		p.AlreadyDone[0].Status[0] = 418
		if resp, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil || !oncehttp.ResultOf(resp).AlreadyDone {
			t.Errorf("%v, want already done", err)
		}
	})
}

// TestProfileOfIsCopied: the profile that ProfileOf returns is read once: a caller may change its own at any time.
func TestProfileOfIsCopied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := clienttest.OwnProfile()
		p.AlreadyDone = []profile.Matcher{{Status: []int{503}}}
		first, j := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, func(cfg *oncehttp.Config) { cfg.Profile = p })
		if err := first.Enqueue(clienttest.Post(t, "{}"), "k"); err != nil {
			t.Fatal(err)
		}
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503}}, Before: func(int, *http.Request) { p.AlreadyDone[0].Status[0] = 418 }}
		next, _ := clienttest.New(t, w, clienttest.On(journaltest.Survivors(t, j), func(cfg *oncehttp.Config) {
			cfg.ProfileOf = func(persist.Record) *profile.Profile { return p }
		}))
		if got := clienttest.Resume(t, next)["k"]; !errors.Is(got.Err, oncehttp.ErrDuplicate) || w.Count() != 1 {
			t.Errorf("%v after %d sends, want already done, by another request, after 1", got.Err, w.Count())
		}
	})
}

// TestProfilesOfOneName: two profiles of one name and version with different facts would read one operation in two ways,
// so that New refuses them and names both. Copies, and texts for people, do not count.
func TestProfilesOfOneName(t *testing.T) {
	t.Parallel()
	changed := func(change func(*profile.Profile)) *profile.Profile {
		p := clienttest.OwnProfile()
		change(p)
		return p
	}
	for name, r := range map[string]struct {
		other *profile.Profile
		says  string // empty: it is taken
	}{
		"a copy":            {clienttest.OwnProfile(), ""},
		"other notes":       {changed(func(p *profile.Profile) { p.Notes, p.Title = []string{"n"}, "t" }), ""},
		"another name":      {changed(func(p *profile.Profile) { p.Name, p.Carrier.Name = "other", "X-Request-Id" }), ""},
		"another version":   {changed(func(p *profile.Profile) { p.Version, p.Carrier.Name = "2", "X-Request-Id" }), ""},
		"another carrier":   {changed(func(p *profile.Profile) { p.Carrier.Name = "X-Request-Id" }), "carrier"},
		"no carrier":        {changed(func(p *profile.Profile) { p.Carrier = profile.Carrier{Place: profile.Nowhere} }), "carrier"},
		"another window":    {changed(func(p *profile.Profile) { p.Window.Floor = time.Hour }), "window"},
		"another matcher":   {changed(func(p *profile.Profile) { p.Mismatch = nil }), "mismatch"},
		"a header compared": {changed(func(p *profile.Profile) { p.Fingerprint = []string{"X-Version"} }), "fingerprint"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for about, byHost := range map[string]map[string]*profile.Profile{
				`Profile and ProfileByHost["b.example.com"]`:                        {"b.example.com": r.other},
				`ProfileByHost["a.example.com"] and ProfileByHost["b.example.com"]`: {"a.example.com": clienttest.OwnProfile(), "b.example.com": r.other},
			} {
				cfg := oncehttp.Config{Journal: memory.New(), ProfileByHost: byHost}
				if len(byHost) == 1 {
					cfg.Profile = clienttest.OwnProfile()
				}
				c, err := oncehttp.New(cfg)
				if (err == nil) != (r.says == "") {
					t.Fatalf("%s: %v", about, err)
				}
				if err == nil {
					c.Close()
					continue
				}
				for _, want := range []string{about, `"own"`, r.says, "Name"} {
					if !errors.Is(err, oncehttp.ErrConfig) || !strings.Contains(err.Error(), want) {
						t.Errorf("%v, want ErrConfig that says %s", err, want)
					}
				}
			}
		})
	}
}

// TestFrozenCarrier: after a crash an operation goes on by the carrier that it recorded, although the profile of its name
// has another by then. One that no key protected is held and not sent again, whatever keys the API takes since.
func TestFrozenCarrier(t *testing.T) {
	t.Parallel()
	with := func(carrier profile.Carrier) func(*oncehttp.Config) {
		return func(cfg *oncehttp.Config) {
			cfg.Profile = clienttest.OwnProfile()
			cfg.Profile.Carrier = carrier
			if carrier.Place == profile.Nowhere {
				cfg.Profile.Stored, cfg.Profile.Replay = profile.Stored{}, nil
			}
		}
	}
	nowhere, header := profile.Carrier{Place: profile.Nowhere}, profile.Carrier{Place: profile.Header, Name: "Idempotency-Key"}
	for name, r := range map[string]struct {
		before, after profile.Carrier
		sends         int
		state         persist.State
	}{
		"no key, then one":  {nowhere, header, 0, persist.StateHeld},
		"no key, then none": {nowhere, nowhere, 0, persist.StateHeld},
		"a key, then none":  {header, nowhere, 1, persist.StateConfirmed},
		"another header":    {header, profile.Carrier{Place: profile.Header, Name: "X-Request-Id"}, 1, persist.StateConfirmed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
				first, j := clienttest.New(t, w, with(r.before))
				rec, err := first.Prepare(clienttest.Post(t, "{}"), "k")
				if err != nil {
					t.Fatal(err)
				}
				rec.MaybeSent, rec.FirstSent = true, time.Now().Round(0) // the process ended during its first send
				if _, _, err := j.Begin(t.Context(), rec); err != nil {
					t.Fatal(err)
				}
				next, _ := clienttest.New(t, w, clienttest.On(journaltest.Survivors(t, j), with(r.after)))
				clienttest.Resume(t, next)
				if got := clienttest.Lookup(t, next, "k"); got.State != r.state || w.Count() != r.sends {
					t.Errorf("%v (%s) after %d sends, want %v after %d", got.State, got.HoldReason, w.Count(), r.state, r.sends)
				}
				for _, s := range w.All() {
					if s.Key != "k" {
						t.Errorf("sent with %v", s.Header)
					}
				}
			})
		})
	}
}
