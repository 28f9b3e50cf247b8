package results

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/oncehttp/oncehttp/internal/command/words"
)

// MinorDigits returns the number of decimals of a currency: ISO 4217 lists the currencies with none and those with three.
func MinorDigits(currency string) int {
	switch strings.ToUpper(currency) {
	case "BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI", "VND", "VUV", "XAF", "XOF", "XPF":
		return 0
	case "BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND":
		return 3
	}
	return 2
}

// Numbers is the way of a file to write numbers: the value of --decimal.
type Numbers string

// Mark returns the character before the decimals; "" if it is not declared.
func (n Numbers) Mark() string { return string(n) }

// Number returns a cell's number as JSON spells it. Without a declared mark it returns the cell unchanged.
func (n Numbers) Number(cell string) (string, error) {
	if n == "" {
		return cell, nil
	}
	d, err := LocalDecimal(cell, string(n))
	return d.String(), err
}

// Minor returns a cell's amount in the smallest unit of its currency. An amount with a part of that unit is refused, never rounded.
func (n Numbers) Minor(cell, currency string) (string, error) {
	currency = strings.ToUpper(strings.TrimSpace(currency))
	if !IsCurrency(currency) {
		return "", fmt.Errorf("has an amount in %q, which is no currency of three letters", words.Clip(currency))
	}
	d, err := CellDecimal(cell, string(n))
	if err != nil {
		return "", fmt.Errorf("%q %w", words.Clip(cell), err)
	}
	d.Scale -= MinorDigits(currency)
	if d.Scale < 0 {
		d.rescale(0)
	}
	if part := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(d.Scale)), nil); new(big.Int).Rem(&d.units, part).Sign() == 0 {
		return new(big.Int).Quo(&d.units, part).String(), nil
	}
	return "", fmt.Errorf("%q has more decimals than %s, which has %d", words.Clip(cell), currency, MinorDigits(currency))
}
