package input

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
)

// Look selects additional facts to find out about rows, for warnings. The texts name a column or member of a row; "" leaves the fact out.
type Look struct {
	Totals   bool   // Row.Total: the cell that calls the row a sum of others; Row.NamesTotal: one that begins or ends so
	Apart    string // Row.Rest: a digest of the row without this column
	Amount   string // Row.Amount: the text of this column
	Currency string // Row.Currency: the text of this column
}

// totalWords returns words, in many languages, by which a row says that its amount is the sum of other rows. Such a row at the end of an export is no payment.
func totalWords() []string {
	return []string{
		"total", "totals", "grand total", "subtotal", "sub-total", "sum", "summe", "gesamt", "gesamtsumme", "zwischensumme",
		"totale", "total général", "total general", "sous-total", "sous total", "somme", "montant total", "saldo", "salden", "endsumme", "endbetrag", "gesamtbetrag",
		"somma", "totale generale", "subtotale", "suma", "suma total", "razem", "łącznie", "totaal", "totaalbedrag", "subtotaal", "eindtotaal", "soma",
		"summa", "totalt", "yhteensä", "i alt", "celkem", "spolu", "összesen", "toplam", "ukupno", "σύνολο", "итого", "всего", "合计", "合計", "总计", "總計",
	}
}

// isTotal reports whether a cell says that its row is a sum of other rows: it is one of totalWords, perhaps with a number, a currency, or more in brackets or behind a
// colon.
func isTotal(cell string) bool {
	const bytesMax = 40 // a longer cell is a sentence
	if len(cell) > bytesMax {
		return false
	}
	text, _, _ := strings.Cut(strings.TrimSpace(cell), ":")
	if at := strings.IndexAny(text, "([=0123456789"); at >= 0 {
		text = text[:at]
	}
	text = strings.TrimRight(text, " -")
	if words := strings.Fields(text); len(words) > 1 && slices.Contains([]string{"EUR", "USD", "GBP", "CHF", "amount", "Amount", "AMOUNT"}, words[len(words)-1]) {
		text = strings.Join(words[:len(words)-1], " ")
	}
	return slices.Contains(totalWords(), strings.ToLower(text))
}

// namesTotal reports whether the first or the last word of a cell is one of totalWords, as in "Subtotal ACME": the row may be a sum of others, or that of somebody
// called so.
func namesTotal(cell string) bool {
	const bytesMax = 80 // a longer cell is a sentence
	cell = strings.TrimSpace(cell)
	first := strings.IndexFunc(cell, unicode.IsSpace)
	if first < 0 || len(cell) > bytesMax {
		return false
	}
	return isTotal(cell[:first]) || isTotal(cell[strings.LastIndexFunc(cell, unicode.IsSpace)+1:])
}

// looker looks at the cells of one row.
type looker struct {
	look Look
	row  *Row
	rest []byte
}

// cell looks at one cell of a row, by its column's name and its text. It notes words such as "Total", the amount and the currency in the row, and adds the cell to the
// hash of the rest of the row.
func (l *looker) cell(name, text string) {
	if l.look.Totals && l.row.Total == "" && isTotal(text) {
		l.row.Total = strings.Clone(strings.TrimSpace(text))
	}
	if l.look.Totals && l.row.NamesTotal == "" && namesTotal(text) {
		l.row.NamesTotal = strings.Clone(strings.TrimSpace(text))
	}
	switch name {
	case "": // an Amount or a Currency of "" is asked for by nobody
	case l.look.Amount:
		l.row.Amount = strings.Clone(text)
	case l.look.Currency:
		l.row.Currency = strings.Clone(text)
	}
	if l.look.Apart == "" || name == l.look.Apart {
		return
	}
	for _, part := range []string{name, text} {
		l.rest = append(binary.AppendUvarint(l.rest, uint64(len(part))), part...)
	}
}

// end sets the hash of all cells but the amount in the row, by which rows that differ in the amount alone are found. It is called after the last cell.
func (l *looker) end() {
	if l.look.Apart != "" {
		sum := sha256.Sum256(l.rest)
		l.row.Rest = [16]byte(sum[:16])
	}
}

// lookAtRecord notes likely mistakes of a CSV record in r, as far as the caller asked for them: a total, the amount and currency, and a hash of the other cells.
func (c *csvRows) lookAtRecord(r *Row, record []string) {
	if c.needs.Look == (Look{}) {
		return
	}
	l := looker{look: c.needs.Look, row: r}
	for i, text := range record {
		l.cell(c.names[i], text)
	}
	l.end()
}

// lookAtLine notes likely mistakes of an NDJSON line in r, as far as the caller asked for them: a total, the amount and currency, and a hash of the other members. The
// line must be an object.
func (n *NDJSONRows) lookAtLine(r *Row, line []byte) {
	if n.needs.Look == (Look{}) {
		return
	}
	l := looker{look: n.needs.Look, row: r}
	dec := json.NewDecoder(bytes.NewReader(line))
	_, _ = dec.Token()
	for dec.More() {
		name, err := dec.Token()
		var value json.RawMessage
		if err != nil || dec.Decode(&value) != nil {
			return // it was read before
		}
		var text string
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
		l.cell(name.(string), text)
	}
	l.end()
}
