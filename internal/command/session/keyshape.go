package session

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp"
)

// KeyShape says what is made of a key before it is used, for APIs that do not take every key.
type KeyShape struct {
	UUID, UUID4 bool
	short       int
}

// The bounds of --key-short: 80 bits, and all that there are.
const (
	keyShortMin = 16
	keyShortMax = 52
)

func (s *KeyShape) Bind(fs *pflag.FlagSet) {
	fs.BoolVar(&s.UUID, "key-uuid", false, "use each key as a UUID of version 5 that is made of it (batch does where the profile says that keys must be UUIDs)")
	fs.BoolVar(&s.UUID4, "key-uuid4", false, "use each key as a UUID in the shape of version 4 that is made of it; it is not random")
	fs.IntVar(&s.short, "key-short", 0, "use each key as so many characters of a-z and 2-7 that are made of it, 16 to 52, where keys must be short")
}

// Set reports whether something is made of keys.
func (s *KeyShape) Set() bool { return s.UUID || s.UUID4 || s.short != 0 }

// Check refuses two shapes, and a short key that strangers might share.
func (s *KeyShape) Check() error {
	switch {
	case s.UUID && s.UUID4 || s.short != 0 && (s.UUID || s.UUID4):
		return errors.New("--key-uuid, --key-uuid4 and --key-short each make another key; say one")
	case s.short != 0 && (s.short < keyShortMin || s.short > keyShortMax):
		return fmt.Errorf("--key-short %d: want %d to %d characters; fewer would let the keys of strangers meet", s.short, keyShortMin, keyShortMax)
	}
	return nil
}

// Of is the key that is used in the place of k.
func (s *KeyShape) Of(k oncehttp.Key) oncehttp.Key {
	switch {
	case s.short != 0:
		return k.Short(s.short)
	case s.UUID4:
		return k.UUIDv4()
	case s.UUID:
		return k.UUID()
	}
	return k
}
