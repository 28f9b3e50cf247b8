package results

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
	"unicode"

	"github.com/oncehttp/oncehttp/internal/command/words"
)

// Decimal is an exact decimal number: units divided by ten to the power of scale.
// The zero value is 0. Amounts are decimals, never floats.
type Decimal struct {
	units big.Int
	Scale int
}

// The bounds of a number to read: a short text such as 1e999999999 must not take the machine's memory.
const (
	decimalDigitsMax   = 60
	decimalExponentMax = 30
)

var ErrNoDecimal = errors.New("is no decimal number")

// ParseDecimal reads digits, a point and digits, with a sign and an exponent if there is one, as JSON spells numbers. The error is ErrNoDecimal for any other
// text, also without a digit before the point, and for one that is too long. The result's Scale is the number of its decimals, 0 at least.
func ParseDecimal(text string) (Decimal, error) {
	var d Decimal
	mantissa, exponent := text, 0
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		mantissa = text[:at]
		if n, err := fmt.Sscanf(text[at+1:], "%d", &exponent); n != 1 || err != nil || strings.Trim(text[at+1:], "+-0123456789") != "" {
			return d, ErrNoDecimal
		}
		if exponent < -decimalExponentMax || exponent > decimalExponentMax {
			return d, ErrNoDecimal
		}
	}
	sign := ""
	if mantissa != "" && (mantissa[0] == '-' || mantissa[0] == '+') {
		sign, mantissa = mantissa[:1], mantissa[1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	if whole == "" || strings.HasSuffix(mantissa, ".") || len(digits) > decimalDigitsMax || strings.Trim(digits, "0123456789") != "" {
		return d, ErrNoDecimal
	}
	if _, ok := d.units.SetString(sign+digits, 10); !ok {
		return d, ErrNoDecimal
	}
	d.Scale = len(fraction) - exponent
	if d.Scale < 0 {
		d.rescale(0)
	}
	return d, nil
}

// rescale gives d another scale. scale must not be less than d's own.
func (d *Decimal) rescale(scale int) {
	if scale > d.Scale {
		d.units.Mul(&d.units, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale-d.Scale)), nil))
		d.Scale = scale
	}
}

// Sign returns -1, 0 or 1: that of the number.
func (d *Decimal) Sign() int { return d.units.Sign() }

// Add adds o to d, exactly: no digit is lost.
func (d *Decimal) Add(o *Decimal) {
	if o.Scale > d.Scale {
		d.rescale(o.Scale)
	}
	if o.Scale < d.Scale {
		var same Decimal
		same.units.Set(&o.units)
		same.Scale = o.Scale
		same.rescale(d.Scale)
		o = &same
	}
	d.units.Add(&d.units, &o.units)
}

// Equals reports whether both are the same number, whatever their decimals: 1.5 equals 1.50.
func (d *Decimal) Equals(o *Decimal) bool {
	var difference Decimal
	difference.units.Neg(&o.units)
	difference.Scale = o.Scale
	difference.Add(d)
	return difference.units.Sign() == 0
}

// String spells the number in digits with a point, with as many decimals as its scale.
func (d *Decimal) String() string {
	if d.Scale <= 0 {
		return d.units.String()
	}
	text := new(big.Int).Abs(&d.units).String()
	if len(text) <= d.Scale {
		text = strings.Repeat("0", d.Scale+1-len(text)) + text
	}
	text = text[:len(text)-d.Scale] + "." + text[len(text)-d.Scale:]
	if d.units.Sign() < 0 {
		text = "-" + text
	}
	return text
}

// LocalDecimal reads a number as people write it. mark is the character between the whole and the fraction, "." or ","; the other one,
// spaces and apostrophes then part groups of three digits. Without a mark ("") it refuses a number with groups, with a comma, or with a
// point before a possible group of three. Nobody guesses the meaning of 1.234; 0.234 is clear, since no group begins with 0.
func LocalDecimal(text, mark string) (Decimal, error) {
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
			return Decimal{}, errors.New("may be read in two ways; say --decimal . or --decimal ,")
		}
		return ParseDecimal(sign + rest)
	}
	whole, fraction, has := strings.Cut(text, mark)
	if has && strings.ContainsFunc(fraction, func(r rune) bool { return r < '0' || r > '9' }) {
		return Decimal{}, ErrNoDecimal
	}
	whole, err := ungrouped(whole, mark)
	if err != nil {
		return Decimal{}, err
	}
	if has {
		whole += "." + fraction
	}
	return ParseDecimal(whole)
}

// CellDecimal reads the number in a cell of a table; mark is its decimal mark, or "" if the user named none. If the text can be read only with a
// mark, the error advises which value of --decimal reads it.
func CellDecimal(text, mark string) (Decimal, error) {
	d, err := LocalDecimal(text, mark)
	if mark != "" || err == nil {
		return d, err
	}
	point, noPoint := LocalDecimal(text, ".")
	comma, noComma := LocalDecimal(text, ",")
	switch {
	case noPoint == nil && noComma == nil && point.Equals(&comma):
		return d, errors.New("is not a plain number; --decimal . or --decimal , reads it")
	case noPoint == nil && noComma == nil:
		return d, err
	case noPoint == nil:
		return d, errors.New("is not a plain number; --decimal . reads it")
	case noComma == nil:
		return d, errors.New("is not a plain number; --decimal , reads it")
	}
	return d, ErrNoDecimal
}

// isGroup reports whether some country separates groups of digits by this character.
func isGroup(r rune) bool { return strings.ContainsRune(".,'’", r) || unicode.IsSpace(r) }

// isGrouped reports whether a number has groups separated by other characters than points and commas.
func isGrouped(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r != '.' && r != ',' && isGroup(r) })
}

// ungrouped returns a whole number without the marks between its groups of three digits. mark is the decimal mark, which cannot part groups. The
// error is ErrNoDecimal for groups of another length, and for marks of two kinds.
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
	// The number of parts: no mark stands at an end, or beside another.
	if strings.Trim(marks, string(first)) != "" || string(first) == mark || len(parts) != len([]rune(marks))+1 {
		return "", ErrNoDecimal
	}
	for i, part := range parts {
		if i > 0 && len(part) != 3 || i == 0 && len(strings.TrimLeft(part, "+-")) > 3 {
			return "", ErrNoDecimal
		}
	}
	return strings.Join(parts, ""), nil
}

// DecimalMark returns an error for a value of --decimal that is neither ".", nor ",", nor empty.
func DecimalMark(text string) error {
	if text != "" && text != "." && text != "," {
		return fmt.Errorf("--decimal %q: want . or , as what stands before the decimals", words.Clip(text))
	}
	return nil
}
