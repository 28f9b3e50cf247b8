package profiles_test

import (
	"errors"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// TestAKeyOnTheWireIsOneOperations: at one origin and in one account no two operations are sent under one key, however the Configs spell and
// carry keys, and whichever shape is made of them.
func TestAKeyOnTheWireIsOneOperations(t *testing.T) {
	t.Parallel()
	const business = oncehttp.Key("idemp:order:u1:o7")
	raw := clienttest.WithProfile("raw", func(p *profile.Profile) { p.Encoding = profile.Raw })
	quoted := clienttest.WithProfile("quoted", func(p *profile.Profile) { p.Encoding = profile.SFString })
	inBody := clienttest.Together(carried(profile.Body, "/k"), inserting)
	for name, r := range map[string]struct {
		one, other    func(*oncehttp.Config)
		first, second oncehttp.Key
	}{
		"raw with quotes, then spelled with quotes": {raw, quoted, `"k1"`, "k1"},
		"spelled with quotes, then raw with quotes": {quoted, raw, "k1", `"k1"`},
		"in a header, then put into the body":       {raw, inBody, "k1", "k1"},
		"put into the body, then in a header":       {inBody, raw, "k1", "k1"},
		"a short key, then the same by itself":      {raw, raw, business.Short(32), oncehttp.Key(string(business.Short(32)))},
		"a UUID, then the same by itself":           {raw, inBody, business.UUID(), oncehttp.Key(string(business.UUID()))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, j := wiretest.Paid(), memory.New()
			one, _ := clienttest.New(t, w, clienttest.On(j, r.one))
			other, _ := clienttest.New(t, w, clienttest.On(j, r.other))
			clienttest.Do(t, one, clienttest.Request(t, "POST", "https://api.example.com/orders", `{"order":1}`), r.first)
			_, err := other.DoKey(clienttest.Request(t, "POST", "https://api.example.com/orders", `{"order":2}`), r.second)
			if !errors.Is(err, oncehttp.ErrKeyReused) && !errors.Is(err, oncehttp.ErrConfig) || w.Count() != 1 {
				t.Errorf("another request: %v after %d sends, want a refusal and one send", err, w.Count())
			}
		})
	}
}
