package results

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/oncehttp/oncehttp/internal/command/words"
)

// MinorDigits returns the number of decimals of a currency, as ISO 4217 lists it. known is false for a code that it does not list with
// decimals, such as XAU or BTC: nobody can say then what the smallest unit of an amount is.
func MinorDigits(currency string) (digits int, known bool) {
	switch strings.ToUpper(currency) {
	case "BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "UYI", "VND", "VUV", "XAF", "XOF", "XPF":
		return 0, true
	case
		"AED", "AFN", "ALL", "AMD", "ANG", "AOA", "ARS", "AUD", "AWG", "AZN", "BAM", "BBD", "BDT", "BGN", "BMD", "BND", "BOB", "BOV", "BRL", "BSD",
		"BTN", "BWP", "BYN", "BZD", "CAD", "CDF", "CHE", "CHF", "CHW", "CNY", "COP", "COU", "CRC", "CUC", "CUP", "CVE", "CZK", "DKK", "DOP", "DZD",
		"EGP", "ERN", "ETB", "EUR", "FJD", "FKP", "GBP", "GEL", "GHS", "GIP", "GMD", "GTQ", "GYD", "HKD", "HNL", "HRK", "HTG", "HUF", "IDR", "ILS",
		"INR", "IRR", "JMD", "KES", "KGS", "KHR", "KPW", "KYD", "KZT", "LAK", "LBP", "LKR", "LRD", "LSL", "MAD", "MDL", "MGA", "MKD", "MMK", "MNT",
		"MOP", "MRU", "MUR", "MVR", "MWK", "MXN", "MXV", "MYR", "MZN", "NAD", "NGN", "NIO", "NOK", "NPR", "NZD", "PAB", "PEN", "PGK", "PHP", "PKR",
		"PLN", "QAR", "RON", "RSD", "RUB", "SAR", "SBD", "SCR", "SDG", "SEK", "SGD", "SHP", "SLE", "SLL", "SOS", "SRD", "SSP", "STN", "SVC", "SYP",
		"SZL", "THB", "TJS", "TMT", "TOP", "TRY", "TTD", "TWD", "TZS", "UAH", "USD", "USN", "UYU", "UZS", "VED", "VES", "WST", "XAD", "XCD", "XCG",
		"YER", "ZAR", "ZMW", "ZWG", "ZWL":
		return 2, true
	case "BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND":
		return 3, true
	case "CLF", "UYW":
		return 4, true
	}
	return 0, false
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

// Minor returns a cell's amount as a whole number of the smallest unit of its currency, such as cents. An amount with a part of that unit is an error, never
// rounded.
func (n Numbers) Minor(cell, currency string) (string, error) {
	currency = strings.ToUpper(strings.TrimSpace(currency))
	if !IsCurrency(currency) {
		return "", fmt.Errorf("has an amount in %q, which is no currency of three letters", words.Clip(currency))
	}
	d, err := CellDecimal(cell, string(n))
	if err != nil {
		return "", fmt.Errorf("%q %w", words.Clip(cell), err)
	}
	digits, known := MinorDigits(currency)
	if !known {
		return "", fmt.Errorf("has an amount in %q, whose smallest unit ISO 4217 does not list", currency)
	}
	if d.IsWhole(digits) {
		d.Scale -= digits
		if d.Scale < 0 {
			d.rescale(0)
		}
		return new(big.Int).Quo(&d.units, tenTo(d.Scale)).String(), nil // cuts off only zeros
	}
	return "", fmt.Errorf("%q has more decimals than %s, which has %d", words.Clip(cell), currency, digits)
}

// IsWhole reports whether d has at most digits decimals. Zeros at its end do not count.
func (d *Decimal) IsWhole(digits int) bool {
	return d.Scale <= digits || new(big.Int).Rem(&d.units, tenTo(d.Scale-digits)).Sign() == 0
}

// tenTo returns ten to the power of n, which is not negative.
func tenTo(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }
