package results

import (
	"math/big"
	"testing"
)

// Sums are exact, and keep the decimals of the parts.
func TestDecimalAdd(t *testing.T) {
	t.Parallel()
	var sum Decimal
	for _, text := range []string{"0.1", "0.2", "10", "-0.30"} {
		d, err := ParseDecimal(text)
		if err != nil {
			t.Fatal(err)
		}
		sum.Add(&d)
		if d.String() != text {
			t.Errorf("%s became %s", text, d.String())
		}
	}
	if sum.String() != "10.00" {
		t.Errorf("sum %s, want 10.00", sum.String())
	}
}

// FuzzDecimal holds the sum of two numbers against package big's.
func FuzzDecimal(f *testing.F) {
	f.Add("1.50", "-0.005")
	f.Add("1e3", "99")
	f.Fuzz(func(t *testing.T, one, two string) {
		a, errA := ParseDecimal(one)
		b, errB := ParseDecimal(two)
		if errA != nil || errB != nil {
			return
		}
		ra, okA := new(big.Rat).SetString(one)
		rb, okB := new(big.Rat).SetString(two)
		if !okA || !okB {
			t.Fatalf("%q or %q is a number here only", one, two)
		}
		a.Add(&b)
		got, _ := new(big.Rat).SetString(a.String())
		if got.Cmp(ra.Add(ra, rb)) != 0 {
			t.Errorf("%q and %q: %s", one, two, a.String())
		}
	})
}
