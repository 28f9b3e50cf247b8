package view

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
)

// HeldCause returns the reason why an operation is held (not sent until a person decides) if its last attempt was answered, and had no error; "" for other
// operations. A reason without words here is given as the record has it.
func HeldCause(rec *persist.Record) string {
	n := len(rec.History)
	if rec.State != persist.StateHeld || n == 0 || rec.History[n-1].Status == 0 || rec.History[n-1].Error != "" {
		return ""
	}
	status, why := rec.History[n-1].Status, string(rec.HoldReason)
	success := status >= http.StatusOK && status < http.StatusMultipleChoices
	switch rec.HoldReason {
	case persist.HoldUnclear:
		switch {
		case success && strings.Contains(rec.Profile, words.DoneMark):
			why = "not what --done names as a success"
		case status == http.StatusAccepted:
			why = "taken on, and nothing tells what came of it"
		case success:
			why = "a success whose content does not prove it"
		default:
			why = "an answer that settles nothing"
		}
	case persist.HoldStoredError:
		why = "an error that the server keeps under the key"
	case persist.HoldRedirected:
		why = "a redirect, which was not followed"
	case persist.HoldExpired:
		why = "and the server may have forgotten the key"
	case persist.HoldNoKey:
		why = "and no key protects another send"
	case persist.HoldMismatch:
		why = "the key belongs to another request"
	}
	return fmt.Sprintf("answered %d: %s", status, why)
}
