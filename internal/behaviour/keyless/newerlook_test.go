package keyless_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// freezes is a journal in which a later version of this module begins records.
type freezes struct {
	persist.Journal
	freeze func(*persist.Record)
}

func (f *freezes) Begin(ctx context.Context, rec persist.Record) (persist.Record, bool, error) {
	f.freeze(&rec)
	return f.Journal.Begin(ctx, rec)
}

// TestUnreadBesideWhatIsSecretElsewhere: a request whose body cannot be read, and that names no key, may be the same as one in doubt that
// was begun by other names of secrets, or by a later version of this module, whose rules are not known. One of another path is not.
func TestUnreadBesideWhatIsSecretElsewhere(t *testing.T) {
	t.Parallel()
	const url = "https://api.example.com/payments"
	for build, freeze := range map[string]func(*persist.Record){
		"this version":      func(*persist.Record) {},
		"another recipe":    func(rec *persist.Record) { rec.Recipe = "v9:" + rec.Recipe },
		"another carrier":   func(rec *persist.Record) { rec.Carrier = "trailer" },
		"another, for both": func(rec *persist.Record) { rec.Recipe, rec.Carrier = "v9", "trailer" },
	} {
		for _, before := range [][]string{nil, {"channel"}, {"CHANNEL", "shop"}} {
			for _, now := range [][]string{nil, {"channel"}, {"other"}} {
				for target, same := range map[string]bool{"?channel=c1": true, "?channel=c1&shop=2": true, "/other?channel=c1": false} {
					t.Run(fmt.Sprint(build, before, now, target), func(t *testing.T) {
						t.Parallel()
						synctest.Test(t, func(t *testing.T) {
							j := memory.New()
							secrets := func(names []string) func(*oncehttp.Config) {
								return func(cfg *oncehttp.Config) {
									cfg.SecretParameters = names
									cfg.Authorize = func(*http.Request) error { return nil }
								}
							}
							begun := target
							if !same {
								begun = "?channel=c1"
							}
							first, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.On(&freezes{j, freeze}, clienttest.OneAttempt, secrets(before)))
							if _, err := first.Do(clienttest.Request(t, http.MethodPost, url+begun, "{}")); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
								t.Fatal(err)
							}
							c, _ := clienttest.New(t, &wiretest.Wire{}, clienttest.On(j, secrets(now)))
							req := clienttest.Request(t, http.MethodPost, url+target, "{}")
							req.ContentLength = 100 // it has less
							_, err := c.Do(req)
							if clienttest.ExactlyOne(t, err); errors.Is(err, oncehttp.ErrOutcomeUnknown) != same {
								t.Errorf("%v, want it unknown: %t", err, same)
							}
						})
					})
				}
			}
		}
	}
}
