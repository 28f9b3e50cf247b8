package main

import (
	"math/big"
	"strings"
	"testing"
)

func TestParseDecimal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0": "0", "12": "12", "12.50": "12.50", "-0.05": "-0.05", "+3": "3", "1e2": "100", "1.5E-3": "0.0015", "12.34e1": "123.4", "007": "7",
		"123456789012345678901234567890.12": "123456789012345678901234567890.12",
	} {
		if d, err := parseDecimal(text); err != nil || d.String() != want {
			t.Errorf("%q: %s, %v; want %s", text, d.String(), err, want)
		}
	}
	for _, text := range []string{
		"", "-", ".", ".5", "5.", "1/3", "0x10", "1_000", "1,00", "NaN", "Inf", " 1", "1 ", "--1", "1e", "1e999999999", "1e-31", "1e+-1", "١", strings.Repeat("9", 61),
	} {
		if d, err := parseDecimal(text); err == nil {
			t.Errorf("%q: %s, want none", text, d.String())
		}
	}
}

// Sums are exact, and keep the decimals of the parts.
func TestDecimalAdd(t *testing.T) {
	t.Parallel()
	var sum decimal
	for _, text := range []string{"0.1", "0.2", "10", "-0.30"} {
		d, err := parseDecimal(text)
		if err != nil {
			t.Fatal(err)
		}
		sum.add(&d)
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
		a, errA := parseDecimal(one)
		b, errB := parseDecimal(two)
		if errA != nil || errB != nil {
			return
		}
		ra, okA := new(big.Rat).SetString(one)
		rb, okB := new(big.Rat).SetString(two)
		if !okA || !okB {
			t.Fatalf("%q or %q is a number here only", one, two)
		}
		a.add(&b)
		got, _ := new(big.Rat).SetString(a.String())
		if got.Cmp(ra.Add(ra, rb)) != 0 {
			t.Errorf("%q and %q: %s", one, two, a.String())
		}
	})
}

func TestLocalDecimal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, mark, want string }{
		{"1234.50", "", "1234.50"}, {" 1 ", "", "1"}, {"1234.567", "", "1234.567"}, {"0.125", "", "0.125"}, {"-5", "", "-5"},
		{"1.234", "", ""}, {"-1.234", "", ""}, {"1,5", "", ""}, {"1 000", "", ""}, {"1.234.567", "", ""},
		{"1.234", ",", "1234"}, {"1.234,50", ",", "1234.50"}, {"1,5", ",", "1.5"}, {"1 234 567,8", ",", "1234567.8"}, {"1\u00a0234,5", ",", "1234.5"}, {"-1.234,5", ",", "-1234.5"},
		{"1.5", ",", ""}, {"12.34", ",", ""}, {"1.234.56", ",", ""}, {"1,234,5", ",", ""}, {"1.234 567", ",", ""}, {"1234.567", ",", ""},
		{"1,234.50", ".", "1234.50"}, {"1.234", ".", "1.234"}, {"1'234'567.8", ".", "1234567.8"}, {"1,5", ".", ""}, {"1.234,5", ".", ""}, {",5", ".", ""}, {"1,,234", ".", ""},
		{"€1", ".", ""}, {"", ".", ""}, {"1e3", ",", "1000"},
	} {
		d, err := localDecimal(c.text, c.mark)
		if got := d.String(); c.want == "" && err == nil || c.want != "" && (err != nil || got != c.want) {
			t.Errorf("%q with %q: %s, %v; want %q", c.text, c.mark, got, err, c.want)
		}
	}
}
