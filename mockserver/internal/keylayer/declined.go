package keylayer

import (
	"net/http"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/profile"
)

// declinedCodes holds the codes of a declined payment by profile name and JSON pointer into the body.
//
// Stripe: stripe-go at 00412af, error.go. Square: the members of an error in the examples of its SDKs, category, code and detail.
var declinedCodes = map[string]map[string]string{
	"stripe": {"/error/type": "card_error", "/error/code": "card_declined", "/error/decline_code": "generic_decline"},
	"square": {"/errors/0/category": "PAYMENT_METHOD_ERROR", "/errors/0/code": "CARD_DECLINED"},
}

const (
	declinedCode    = "payment_declined"
	declinedMessage = "The payment was declined."
)

// DeclinedAnswer returns a 402 with a code in a JSON body, as the profile's API has it. Without a known code of the API it is
// payment_declined, at the place of the code in the API's other errors, or at /error/code. A body that the profile would read
// as another state of the key is replaced by a plain one.
func DeclinedAnswer(p *profile.Profile) *Answer {
	codes, known := declinedCodes[p.Name]
	if !known {
		codes = map[string]string{codePlace(p): declinedCode}
	}
	var body any = map[string]any{}
	for pointer, code := range codes {
		tokens := pointerTokens(pointer)
		body = plant(body, tokens, code)
		// a text beside the code
		body = plant(body, append(slices.Clone(tokens[:len(tokens)-1]), messageName(p)), declinedMessage)
	}
	a := JSONAnswer(http.StatusPaymentRequired, JSONType, body)
	if MatchesAny(slices.Concat(p.AlreadyDone, p.Mismatch, p.InProgress, p.Poisoned), a) { // read as another state of the key
		return JSONAnswer(http.StatusPaymentRequired, JSONType, map[string]any{"error": map[string]any{"code": declinedCode, "message": declinedMessage}})
	}
	return a
}

// messageName returns the name of the JSON member that holds the text of an error, beside its code, in the profile's API.
func messageName(p *profile.Profile) string {
	if p.Name == "square" {
		return "detail"
	}
	return "message"
}

// codePlace returns the JSON pointer to the error's code in answers of the profile's API; /error/code if the profile does not say it. Pointers to the
// text of an error, which end with message, Message or description, are passed over.
func codePlace(p *profile.Profile) string {
	for _, m := range slices.Concat(p.Mismatch, p.InProgress, p.AlreadyDone, p.Unclear) {
		if m.Pointer != "" && !strings.HasSuffix(m.Pointer, "essage") && !strings.HasSuffix(m.Pointer, "/description") {
			return m.Pointer
		}
	}
	return "/error/code"
}
