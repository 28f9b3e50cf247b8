package settings

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp/internal/command/words"
)

// age is the value of a flag: a duration, of days as well. It is not negative.
type age time.Duration

// BindAge binds a flag whose value is a duration, days included, such as 3d. Zero means that it was not given.
func BindAge(fs *pflag.FlagSet, to *time.Duration, name, usage string) {
	fs.Var((*age)(to), name, usage+", such as 2h or 3d")
}

// Set implements pflag.Value: it reads the text of the flag.
func (a *age) Set(text string) error {
	d, err := ParseAge(text)
	if err == nil {
		*a = age(d)
	}
	return err
}

// String returns the duration; "" if it is zero.
func (a *age) String() string {
	if *a == 0 {
		return ""
	}
	return time.Duration(*a).String()
}

// Type implements pflag.Value: it returns the name of the kind of value in help texts.
func (a *age) Type() string { return "age" }

var errNoAge = errors.New("want a duration such as 30m, 2h or 3d")

// ParseAge reads a duration that is not negative, such as 2h, or a number of days, such as 3d, in no other spelling (03d).
func ParseAge(text string) (time.Duration, error) {
	const daysMax = 100_000
	var days int
	if n, err := fmt.Sscanf(text, "%dd", &days); err == nil && n == 1 && text == fmt.Sprintf("%dd", days) && days >= 0 && days <= daysMax {
		return time.Duration(days) * 24 * time.Hour, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, errNoAge
	}
	return d, nil
}

// ParseZoned reads the value of a flag, a time with its zone; an empty text gives the zero time. flag is named in the error.
func ParseZoned(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, fmt.Errorf("%s %q: want a time with its zone, such as 2026-01-31T00:00:00Z", flag, words.Clip(text))
	}
	return t, nil
}
