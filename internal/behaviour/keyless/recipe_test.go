package keyless_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/profile"
)

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
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 201}}}
				first, j := clienttest.New(t, w, clienttest.OneAttempt)
				send := func(c *oncehttp.Client, body string) error {
					req := clienttest.Request(t, "POST", "https://api.example.com/p?n=1", body)
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
				if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.As(err, &e) || string(e.Key) != w.Sends[0].Key || w.Count() != 1 {
					t.Errorf("%v after %d sends", err, w.Count())
				}
				if err := send(second, "{1}"); err != nil || w.Count() != 2 {
					t.Errorf("another request: %v after %d sends", err, w.Count())
				}
			})
		})
	}
}
