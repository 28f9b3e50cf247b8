package main

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
	"unicode"
)

// decimal is an exact decimal number: units divided by ten to the power of scale.
// The zero value is 0. Amounts are decimals, never floats.
type decimal struct {
	units big.Int
	scale int
}

// The bounds of a number that is read: a short text such as 1e999999999 must not take the machine's memory.
const (
	decimalDigitsMax   = 60
	decimalExponentMax = 30
)

var errNoDecimal = errors.New("is no decimal number")

// parseDecimal reads digits, a point and digits, with a sign and an exponent if there is one, as JSON spells numbers.
func parseDecimal(text string) (decimal, error) {
	var d decimal
	mantissa, exponent := text, 0
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		mantissa = text[:at]
		if n, err := fmt.Sscanf(text[at+1:], "%d", &exponent); n != 1 || err != nil || strings.Trim(text[at+1:], "+-0123456789") != "" {
			return d, errNoDecimal
		}
		if exponent < -decimalExponentMax || exponent > decimalExponentMax {
			return d, errNoDecimal
		}
	}
	sign := ""
	if mantissa != "" && (mantissa[0] == '-' || mantissa[0] == '+') {
		sign, mantissa = mantissa[:1], mantissa[1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	if whole == "" || strings.HasSuffix(mantissa, ".") || len(digits) > decimalDigitsMax || strings.Trim(digits, "0123456789") != "" {
		return d, errNoDecimal
	}
	if _, ok := d.units.SetString(sign+digits, 10); !ok {
		return d, errNoDecimal
	}
	d.scale = len(fraction) - exponent
	if d.scale < 0 {
		d.rescale(0)
	}
	return d, nil
}

// rescale gives d another scale, which is not less than its own.
func (d *decimal) rescale(scale int) {
	if scale > d.scale {
		d.units.Mul(&d.units, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale-d.scale)), nil))
		d.scale = scale
	}
}

// add adds o to d.
func (d *decimal) add(o *decimal) {
	if o.scale > d.scale {
		d.rescale(o.scale)
	}
	if o.scale < d.scale {
		var same decimal
		same.units.Set(&o.units)
		same.scale = o.scale
		same.rescale(d.scale)
		o = &same
	}
	d.units.Add(&d.units, &o.units)
}

// equals reports whether both are the same number.
func (d *decimal) equals(o *decimal) bool {
	var difference decimal
	difference.units.Neg(&o.units)
	difference.scale = o.scale
	difference.add(d)
	return difference.units.Sign() == 0
}

// String spells the number with as many decimals as its scale.
func (d *decimal) String() string {
	if d.scale <= 0 {
		return d.units.String()
	}
	text := new(big.Int).Abs(&d.units).String()
	if len(text) <= d.scale {
		text = strings.Repeat("0", d.scale+1-len(text)) + text
	}
	text = text[:len(text)-d.scale] + "." + text[len(text)-d.scale:]
	if d.units.Sign() < 0 {
		text = "-" + text
	}
	return text
}

// localDecimal reads a number as people write it. mark is the character between the whole and the fraction, "." or ",";
// the other one, spaces and apostrophes then part groups of three digits. Without a mark ("") a number with groups, with
// a comma, or with a point that may part a group of three, is refused: nobody guesses whether 1.234 is more than a thousand.
func localDecimal(text, mark string) (decimal, error) {
	text = strings.TrimFunc(text, unicode.IsSpace)
	if mark == "" {
		sign, rest := "", text
		if strings.HasPrefix(text, "-") || strings.HasPrefix(text, "+") {
			sign, rest = text[:1], text[1:]
		}
		whole, fraction, has := strings.Cut(rest, ".")
		switch {
		case has && len(fraction) == 3 && len(whole) >= 1 && len(whole) <= 3 && whole[0] != '0',
			strings.ContainsRune(text, ','), isGrouped(rest):
			return decimal{}, errors.New("may be read in two ways; say --decimal . or --decimal ,")
		}
		return parseDecimal(sign + rest)
	}
	whole, fraction, has := strings.Cut(text, mark)
	if has && strings.ContainsFunc(fraction, func(r rune) bool { return r < '0' || r > '9' }) {
		return decimal{}, errNoDecimal
	}
	whole, err := ungrouped(whole, mark)
	if err != nil {
		return decimal{}, err
	}
	if has {
		whole += "." + fraction
	}
	return parseDecimal(whole)
}

// isGroup reports whether a character parts groups of digits somewhere in the world.
func isGroup(r rune) bool { return strings.ContainsRune(".,'’", r) || unicode.IsSpace(r) }

// isGrouped reports whether a number has groups that are not parted by points or commas.
func isGrouped(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r != '.' && r != ',' && isGroup(r) })
}

// ungrouped takes the marks between groups of three digits out of a whole number.
func ungrouped(whole, mark string) (string, error) {
	parts := strings.FieldsFunc(whole, isGroup)
	marks := strings.Map(func(r rune) rune {
		if isGroup(r) {
			return r
		}
		return -1
	}, whole)
	if marks == "" {
		return whole, nil
	}
	first := []rune(marks)[0]
	if strings.Trim(marks, string(first)) != "" || string(first) == mark || len(parts) != len([]rune(marks))+1 {
		return "", errNoDecimal
	}
	for i, part := range parts {
		if i > 0 && len(part) != 3 || i == 0 && len(strings.TrimLeft(part, "+-")) > 3 {
			return "", errNoDecimal
		}
	}
	return strings.Join(parts, ""), nil
}

// decimalMark checks the value of --decimal.
func decimalMark(text string) error {
	if text != "" && text != "." && text != "," {
		return fmt.Errorf("--decimal %q: want . or , as what stands before the decimals", clip(text))
	}
	return nil
}
