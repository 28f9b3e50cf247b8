package settings

import (
	"errors"

	"github.com/spf13/pflag"
)

// WantedValue returns an error with the kind of value of a flag, in words. cause is the error of the library from
// reading the value.
func WantedValue(flag *pflag.Flag, cause error) error {
	switch flag.Value.Type() {
	case "int", "intSlice":
		return errors.New("want a whole number")
	case "uint64":
		return errors.New("want a whole number that is not negative")
	case "float64":
		return errors.New("want a number")
	case "duration":
		return errors.New("want a duration such as 30s or 5m")
	case "age":
		return errNoAge
	case "bool":
		return errors.New("want true or false")
	}
	return cause
}
