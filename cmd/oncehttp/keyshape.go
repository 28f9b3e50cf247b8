package main

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp"
)

// keyShape says what is made of a key before it is used, for APIs that do not take every key.
type keyShape struct {
	uuid, uuid4 bool
	short       int
}

// The bounds of --key-short: 80 bits, and all that there are.
const (
	keyShortMin = 16
	keyShortMax = 52
)

func (s *keyShape) bind(fs *pflag.FlagSet) {
	fs.BoolVar(&s.uuid, "key-uuid", false, "use each key as a UUID of version 5 that is made of it (batch does where the profile says that keys must be UUIDs)")
	fs.BoolVar(&s.uuid4, "key-uuid4", false, "use each key as a UUID in the shape of version 4 that is made of it; it is not random")
	fs.IntVar(&s.short, "key-short", 0, "use each key as so many characters of a-z and 2-7 that are made of it, 16 to 52, where keys must be short")
}

// set reports whether something is made of keys.
func (s *keyShape) set() bool { return s.uuid || s.uuid4 || s.short != 0 }

// check refuses two shapes, and a short key that strangers might share.
func (s *keyShape) check() error {
	switch {
	case s.uuid && s.uuid4 || s.short != 0 && (s.uuid || s.uuid4):
		return errors.New("--key-uuid, --key-uuid4 and --key-short each make another key; say one")
	case s.short != 0 && (s.short < keyShortMin || s.short > keyShortMax):
		return fmt.Errorf("--key-short %d: want %d to %d characters; fewer would let the keys of strangers meet", s.short, keyShortMin, keyShortMax)
	}
	return nil
}

// of is the key that is used in the place of k.
func (s *keyShape) of(k oncehttp.Key) oncehttp.Key {
	switch {
	case s.short != 0:
		return k.Short(s.short)
	case s.uuid4:
		return k.UUIDv4()
	case s.uuid:
		return k.UUID()
	}
	return k
}

var shortCall = regexp.MustCompile(`Key\.Short\((\d+)\)`)

// shapeWords names the flags where the client's error names the methods of a key.
func shapeWords(text string) string { return shortCall.ReplaceAllString(text, "--key-short $1") }
