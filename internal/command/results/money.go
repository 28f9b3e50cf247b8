package results

import (
	"errors"
	"fmt"
	"strings"

	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// DefaultCurrency is the pointer to the currency in our requests, unless --our-currency gives another.
const DefaultCurrency = "/currency"

// RequestText returns the text at a pointer in the operation's request, or its kept copy if the request is gone. If the text is not
// known, why says the reason.
func RequestText(rec *persist.Record, pointer string) (text, why string) {
	return readRequest(rec).text(pointer)
}

// requestFields are the fields of an operation's request, read once for several questions.
type requestFields struct {
	rec    *persist.Record
	fields request.Fields // of a request that is there
}

// readRequest reads the fields of the record's request once. A request that the journal no longer has is left empty.
func readRequest(rec *persist.Record) requestFields {
	r := requestFields{rec: rec}
	if !rec.RequestGone() {
		r.fields = request.FieldsOf(rec.Header, rec.Body)
	}
	return r
}

// text returns the text at a JSON pointer in the operation's request, or its kept copy if the request is gone. If it is not known, why says the
// reason.
func (r requestFields) text(pointer string) (text, why string) {
	rec := r.rec
	if !rec.RequestGone() {
		text, err := r.fields.Text(pointer)
		switch {
		case errors.Is(err, request.ErrNoField):
			return "", "its request has nothing at " + pointer
		case err != nil:
			return "", "its request has no text, number or boolean at " + pointer
		}
		return text, ""
	}
	gone := "its request was pruned"
	if rec.RequestDropped {
		gone = "its request was dropped after its end"
	}
	for _, f := range rec.KeptFields {
		switch {
		case f.Pointer != pointer:
		case f.Omitted:
			return "", gone + ", and what stood at " + pointer + " was too long to be kept, or no text, number or boolean"
		default:
			return f.Value, ""
		}
	}
	return "", gone + ", and nothing is kept of " + pointer + ": it had nothing there, or was sent without --keep-field " + words.ShellQuote(pointer)
}

// IsCurrency reports whether a text can be a currency's code (ISO 4217).
func IsCurrency(code string) bool {
	return len(code) == 3 && strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// MoneyIn returns the amount and the currency at two pointers of an operation's request. If they are not known, why says the reason. The
// currency may be missing unless it is needed.
func MoneyIn(rec *persist.Record, amountAt, currencyAt string, needed bool) (amount Decimal, currency, why string) {
	r := readRequest(rec)
	text, why := r.text(amountAt)
	if why != "" {
		return amount, "", why
	}
	amount, err := ParseDecimal(strings.TrimSpace(text))
	if err != nil {
		return amount, "", fmt.Sprintf("what its request has at %s is no decimal number: %q", amountAt, words.Clip(text))
	}
	currency, why = r.text(currencyAt)
	if why != "" && needed {
		return amount, "", why
	}
	return amount, strings.ToUpper(strings.TrimSpace(currency)), ""
}
