package oncehttp_test

import (
	"errors"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/profile"
)

// A body that names two keys is refused, and "no effect" is not said of it while either of the two is in doubt.
func TestNeighbourTwoKeysInBody(t *testing.T) {
	t.Parallel()
	inBody := bound("POST")
	inBody.Name, inBody.Carrier = "in-body", profile.Carrier{Place: profile.Body, Name: "/idempotency_key"}
	for name, body := range map[string]string{
		"the first":  `{"idempotency_key":"k-1","idempotency_key":"k-2"}`,
		"the last":   `{"idempotency_key":"k-2","idempotency_key":"k-1"}`,
		"neither":    `{"idempotency_key":"k-3","idempotency_key":"k-2"}`,
		"both":       `{"idempotency_key":"k-1","idempotency_key":"k-1"}`,
		"an escaped": `{"idempotency_key":"k-2","idempotency\u005fkey":"k-1"}`,
	} {
		for _, way := range []string{"Do", "Transport", "Enqueue"} {
			t.Run(name+"/"+way, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T) {
					w := &wire{replies: []reply{{err: errLost}}}
					c, _ := newClient(t, w, func(cfg *oncehttp.Config) { cfg.Profile = inBody; oneAttempt(cfg) })
					if _, err := c.Do(post(t, `{"idempotency_key":"k-1"}`)); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
						t.Fatal(err)
					}
					var err error
					switch way {
					case "Do":
						_, err = c.Do(post(t, body))
					case "Transport":
						_, err = c.StandardClient().Do(post(t, body))
					default:
						err = c.Enqueue(post(t, body), "")
					}
					want := oncehttp.ErrOutcomeUnknown
					if name == "neither" {
						want = oncehttp.ErrNoEffect
					}
					if !errors.Is(err, oncehttp.ErrKeyInvalid) || !errors.Is(err, want) || w.count() != 1 {
						t.Errorf("%v after %d sends, want %v after one", err, w.count(), want)
					}
					exactlyOne(t, err)
				})
			})
		}
	}
}
