package session

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp"
)

// KeyShape is the shape given to each key before its use, for APIs with limits on keys.
type KeyShape struct {
	UUID, UUID4 bool
	short       int
}

// The bounds of --key-short: 80 bits, and all bits.
const (
	keyShortMin = 16
	keyShortMax = 52
)

// Bind adds the flags for the form of keys to fs.
func (s *KeyShape) Bind(fs *pflag.FlagSet) {
	fs.BoolVar(&s.UUID, "key-uuid", false, "use each key as a UUID of version 5 that is made of it (batch does where the profile says that keys must be UUIDs)")
	fs.BoolVar(&s.UUID4, "key-uuid4", false, "use each key as a UUID in the shape of version 4 that is made of it; it is not random")
	fs.IntVar(&s.short, "key-short", 0, "use each key as so many characters of a-z and 2-7 that are made of it, 16 to 52, where keys must be short")
}

// Set reports whether one of the flags gives keys another shape, such as a UUID.
func (s *KeyShape) Set() bool { return s.UUID || s.UUID4 || s.short != 0 }

// Check refuses two shapes at once, and a length of --key-short out of its bounds: strangers might share too short keys.
func (s *KeyShape) Check() error {
	switch {
	case s.UUID && s.UUID4 || s.short != 0 && (s.UUID || s.UUID4):
		return errors.New("--key-uuid, --key-uuid4 and --key-short each make another key; say one")
	case s.short != 0 && (s.short < keyShortMin || s.short > keyShortMax):
		return fmt.Errorf("--key-short %d: want %d to %d characters; fewer would let the keys of strangers meet", s.short, keyShortMin, keyShortMax)
	}
	return nil
}

// Of returns the key in the shape of the flags: a UUID or a short text computed from k, or k itself without a flag. The same k always gives the same result.
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
