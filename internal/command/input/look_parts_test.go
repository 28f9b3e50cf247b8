package input

import (
	"strings"
	"testing"
)

// TestTotalsInOtherLanguages: a row of sums is known by its word in the languages of spreadsheets. A word within a longer text is none.
func TestTotalsInOtherLanguages(t *testing.T) {
	t.Parallel()
	for _, cell := range []string{
		"Total", "TOTAL: 12", "Somme", "Sous-total", "Total général", "Saldo", "SALDO 3", "Summe", "Gesamtbetrag", "Totale", "Somma", "Suma", "Suma total", "Totaal", "Eindtotaal",
		"Razem", "Summa", "Toplam", "Итого", "合計", "Summe EUR",
	} {
		if !isTotal(cell) {
			t.Errorf("%q is no total", cell)
		}
	}
	for _, cell := range []string{"", "Saldo Logistics", "Summerfield", "Somme-Leuze", "12"} {
		if isTotal(cell) {
			t.Errorf("%q is a total", cell)
		}
	}
}

// TestHintAtDecimal: a number that another spelling explains names the --decimal that reads it.
func TestHintAtDecimal(t *testing.T) {
	t.Parallel()
	for cell, want := range map[string]string{
		"1,50": "--decimal , reads", "1.234,50": "--decimal , reads", "1 234,50": "--decimal , reads", "1\u202f234,50": "--decimal , reads", "1,234.50": "--decimal . reads",
		"1'234.50": "--decimal . reads", "1 234": "--decimal . reads", "ten": "", " 7": "", "007": "", "": "", " ": "",
	} {
		text := notANumber(cell).Error()
		if !strings.HasPrefix(text, `"`) || !strings.Contains(text, "is not a JSON number") || strings.Contains(text, "--decimal") != (want != "") || !strings.Contains(text, want) {
			t.Errorf("%q: %s, want %q", cell, text, want)
		}
	}
}
