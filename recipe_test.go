package oncehttp_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// oldRecord is a record of version 1 of the recipe, which left no credential out of the query.
func oldRecord(key string) persist.Record {
	p := profile.Draft07()
	rec := persist.Record{
		ID:     persist.ID{Key: key},
		Origin: "https://api.example.com:443", Method: "POST", Target: "/p?access_token=t&n=1",
		Header: http.Header{"Content-Type": {"application/json"}, "X-Auth": {"x"}}, Body: []byte("{}"),
		Carrier: "header", CarrierName: "Idempotency-Key", WireKey: key, Profile: p.Name, ProfileVersion: p.Version,
		Window: 24 * time.Hour, Created: time.Now(), Recipe: "v1 Content-Type",
	}
	// The recipe, the origin, the method, the target, no Host, and the content type, each behind its length in one
	// byte, then the body.
	rec.Fingerprint = sha256Of("\x0fv1 Content-Type" + "\x1bhttps://api.example.com:443" + "\x04POST" + "\x15" + rec.Target + "\x00" + "\x10application/json" + "{}")
	return rec
}

// TestOldRecipeStillCompares: an operation whose fingerprint was made before credentials left it goes on under the
// same request, and is refused under another.
func TestOldRecipeStillCompares(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		w := &wire{replies: []reply{{status: 201}}}
		c, j := newClient(t, w, nil)
		if _, _, err := j.Begin(t.Context(), oldRecord("k")); err != nil {
			t.Fatal(err)
		}
		other := request(t, "POST", "https://api.example.com/p?access_token=u&n=1", "{}")
		if _, err := c.DoKey(other, "k"); !errors.Is(err, oncehttp.ErrKeyReused) || w.count() != 0 {
			t.Errorf("another request: %v", err)
		}
		same := request(t, "POST", "https://api.example.com/p?access_token=t&n=1", "{}")
		same.Header.Set("X-Auth", "x")
		if resp, err := c.DoKey(same, "k"); err != nil || resp.StatusCode != 201 || w.sends[0].url != "https://api.example.com/p?access_token=t&n=1" {
			t.Errorf("the same request: %v", err)
		}
	})
}

// TestKeylessLoopAcrossRecipes: an operation under a generated key that stands unresolved with a fingerprint of the
// first recipe still stops the same request without a key.
func TestKeylessLoopAcrossRecipes(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		w := &wire{replies: []reply{{status: 201}}}
		c, j := newClient(t, w, nil)
		rec := oldRecord("generated")
		rec.Generated, rec.MaybeSent, rec.FirstSent = true, true, time.Now()
		if _, _, err := j.Begin(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		_, err := c.Do(request(t, "POST", "https://api.example.com/p?access_token=t&n=1", "{}"))
		var e *oncehttp.Error
		if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.As(err, &e) || e.Key != "generated" || w.count() != 0 {
			t.Errorf("%v after %d sends", err, w.count())
		}
	})
}

// TestKeylessLoopAcrossConfigurations: what one client left unresolved stops the same request without a key by a client
// with another profile, other names of credentials or other headers that count; another request goes on.
func TestKeylessLoopAcrossConfigurations(t *testing.T) {
	t.Parallel()
	otherHeaders := profile.Draft07()
	otherHeaders.Name, otherHeaders.Fingerprint = "other", []string{"X-Tenant"}
	for name, change := range map[string]func(*oncehttp.Config){
		"another profile":       func(cfg *oncehttp.Config) { cfg.Profile = profile.StripeV1() },
		"other headers count":   func(cfg *oncehttp.Config) { cfg.Profile = otherHeaders },
		"a secret parameter":    func(cfg *oncehttp.Config) { cfg.SecretParameters = []string{"n"} },
		"a secret header":       func(cfg *oncehttp.Config) { cfg.SecretHeaders = []string{"X-Shop"} },
		"the same in a new one": func(*oncehttp.Config) {},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := &wire{replies: []reply{{err: errLost}, {status: 201}}}
				first, j := newClient(t, w, oneAttempt)
				send := func(c *oncehttp.Client, body string) error {
					req := request(t, "POST", "https://api.example.com/p?n=1", body)
					req.Header.Set("X-Shop", "7")
					_, err := c.Do(req)
					return err
				}
				if err := send(first, "{}"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Fatal(err)
				}
				cfg := oncehttp.Config{Journal: j, Transport: w}
				change(&cfg)
				second, err := oncehttp.New(cfg)
				if err != nil {
					t.Fatal(err)
				}
				defer second.Close()
				err = send(second, "{}")
				var e *oncehttp.Error
				if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.As(err, &e) || string(e.Key) != w.sends[0].key || w.count() != 1 {
					t.Errorf("%v after %d sends", err, w.count())
				}
				if err := send(second, "{1}"); err != nil || w.count() != 2 {
					t.Errorf("another request: %v after %d sends", err, w.count())
				}
			})
		})
	}
}
