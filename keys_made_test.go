package oncehttp_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// inBase32 spells a digest five bits at a time, as RFC 4648 section 6 does, in lower case and without padding.
func inBase32(digest [32]byte) string {
	var bits strings.Builder
	for _, b := range digest {
		fmt.Fprintf(&bits, "%08b", b)
	}
	text, out := bits.String()+"0000", ""
	for i := 0; i+5 <= len(text); i += 5 {
		n := 0
		for _, bit := range text[i : i+5] {
			n = 2*n + int(bit-'0')
		}
		out += string("abcdefghijklmnopqrstuvwxyz234567"[n])
	}
	return out
}

// TestKeysMadeOfKeys: Short and UUIDv4 are what their recipes of version 1 say, for ever. The vectors are Python's, of hashlib and base64.
func TestKeysMadeOfKeys(t *testing.T) {
	t.Parallel()
	for _, v := range []struct{ key, short, id oncehttp.Key }{
		{"idemp:order:u1:o7", "p66vfqxkkinegzwiaad33wgtaxzmi7ttaxiyjxrw66bj5ufgf7ya", "1a00aada-6759-4a7f-b83c-d232da5a9f6a"},
		{"k", "smlcnvxroht3ifhs3tdi5l7e7l72kqk65wkopyscef2rm5jbxdkq", "ab4c6b41-05b2-4b9f-a4b3-612c5e896157"},
		{"idemp:order:u1:o7:gen=2", "njdz5cla3za2om6523ccf5iakbrr363r4h5paysaousdj72ttbda", "4895332d-9c25-4597-aba3-749aa4f8df23"},
	} {
		for _, n := range []int{16, 32, 45, 52, 53, 1 << 30} {
			want := v.short[:min(n, 52)]
			if got := v.key.Short(n); got != want {
				t.Errorf("%s: Short(%d) is %s, want %s", v.key, n, got, want)
			}
		}
		if own := inBase32(sha256.Sum256([]byte("oncehttp key short 1\n" + string(v.key)))); own != string(v.short) {
			t.Errorf("%s: the vector %s is not of the recipe: %s", v.key, v.short, own)
		}
		for _, n := range []int{15, 1, 0, -1} {
			if got := v.key.Short(n); got != "" {
				t.Errorf("%s: Short(%d) is %s, which strangers may share", v.key, n, got)
			}
		}
		if got := v.key.UUIDv4(); got != v.id {
			t.Errorf("%s: UUIDv4 is %s, want %s", v.key, got, v.id)
		}
		sum := sha256.Sum256([]byte("oncehttp key uuidv4 1\n" + string(v.key)))
		id, err := uuid.Parse(string(v.id))
		if err != nil || id.Version() != 4 || id.Variant() != uuid.RFC4122 {
			t.Errorf("%s: %v, %v", v.id, id.Version(), err)
		}
		for i, b := range id {
			mask := map[int]byte{6: 0x0f, 8: 0x3f}[i]
			if mask == 0 {
				mask = 0xff
			}
			if b&mask != sum[i]&mask {
				t.Errorf("%s: byte %d is not that of the recipe", v.id, i)
			}
		}
	}
	if oncehttp.Key("").Short(32) != "" || oncehttp.Key("").UUIDv4() != "" {
		t.Error("a key is made of none")
	}
}

// TestErrorsOfKeysNameWhatFits: where a key breaks a rule, the error names the methods that make one of it that does not, and these are taken.
func TestErrorsOfKeysNameWhatFits(t *testing.T) {
	t.Parallel()
	const key = oncehttp.Key("idemp:order:user-4711:order-2026-11-26-0000001")
	for name, c := range map[string]struct {
		want string
		fits []oncehttp.Key
	}{
		"razorpay-payouts": {"a key of 46 bytes; want 4 to 36; a key that fits: Key.Short(36), or Key.UUID()", []oncehttp.Key{key.Short(36), key.UUID()}},
		"amazon-pay":       {"a key of 46 bytes; want 1 to 32; a key that fits: Key.Short(32)", []oncehttp.Key{key.Short(32)}},
		"paystack":         {"a key with the character ':', which is not taken; a key that fits: Key.Short(52), or Key.UUID()", []oncehttp.Key{key.Short(52), key.UUID()}},
		"lithic":           {"a key that is no UUID; a key that fits: Key.UUID()", []oncehttp.Key{key.UUID(), key.UUIDv4()}},
		"coinbase":         {"a key that is no UUID; a key that fits: a RandomKey that is kept, or Key.UUIDv4()", []oncehttp.Key{key.UUIDv4(), oncehttp.RandomKey()}},
	} {
		p := clienttest.Named(t, name)
		p.Carrier = profile.Carrier{Place: profile.Header, Name: "X-Key"} // where it travels is no matter
		c1, err := oncehttp.New(oncehttp.Config{Journal: memory.New(), Profile: p})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c1.Prepare(clienttest.Post(t, "{}"), key); !errors.Is(err, oncehttp.ErrKeyInvalid) || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		for _, fits := range c.fits {
			if rec, err := c1.Prepare(clienttest.Post(t, "{}"), fits); err != nil || rec.WireKey != string(fits) {
				t.Errorf("%s: %s: %v", name, fits, err)
			}
		}
		if _, err := c1.Prepare(clienttest.Post(t, "{}"), key.UUID()); name == "coinbase" && (err == nil || !strings.Contains(err.Error(), "no UUID of version 4")) {
			t.Errorf("%s: %v", name, err)
		}
		_ = c1.Close()
	}
}
