package profile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Webhook says which events of the API prove that an operation took effect. An event that no entry of Proofs lists proves nothing.
type Webhook struct {
	// Scheme is the name of the way in which the API signs its events, as in package sign.
	Scheme string `json:"scheme"`
	// Events is the JSON pointer to the list of events in a body; empty: a body is one event.
	Events string `json:"events,omitempty"`
	// Event is the pointer to an event in its entry of the list; empty: the entry is the event.
	Event string `json:"event,omitempty"`
	// Type is the pointer to an event's type. It may be several values with dots between: the pointers with spaces between.
	Type string `json:"type"`
	// ID is the pointer to an event's id; empty: it has none.
	ID string `json:"id,omitempty"`
	// Live is the pointer to whether the event is of the live environment; empty: an event does not say. Of a list of events it is in the body.
	Live string `json:"live,omitempty"`
	// LiveValue is the text at Live if the event is of the live environment.
	LiveValue string `json:"live_value,omitempty"`
	// Account is the pointer to the account of the event; empty: an event does not name it.
	Account string `json:"account,omitempty"`
	// AccountHeader is the header of a request that names the account: both are there and equal, or both are absent.
	AccountHeader string `json:"account_header,omitempty"`
	// AccountField is the pointer to the account in a request's body: where both are there, they are equal.
	AccountField string `json:"account_field,omitempty"`
	// Merchant is the pointer to the merchant of the event, where one secret is for all merchants of an application. It equals the merchant of
	// the handler, or both are absent.
	Merchant string `json:"merchant,omitempty"`
	// MerchantOptional: an API for one merchant does not name it in its events.
	MerchantOptional bool `json:"merchant_optional,omitempty"`
	// Created is the pointer to the event's own time: seconds since 1970, or as in RFC 3339. Empty: it has none.
	Created string `json:"created,omitempty"`
	// Proofs are the events that prove an effect.
	Proofs []EventProof `json:"proofs"`
}

// EventProof is one kind of event, and the operations of which it proves that they took effect.
type EventProof struct {
	// Type is the event's type.
	Type string `json:"type"`
	// Where lists values of the event, all of which must be there.
	Where []EventValue `json:"where,omitempty"`
	// Operations are the endpoints of the operations.
	Operations []Endpoint `json:"operations"`
	// Key is the pointer to the key on the wire in the event; empty: it does not have it.
	Key string `json:"key,omitempty"`
	// Reference is a business reference that a record keeps from its request; zero: there is none.
	Reference EventField `json:"reference,omitzero"`
	// Amount is compared where the event and the request both have it; zero: the event has none.
	Amount EventField `json:"amount,omitzero"`
	// Currency is compared like Amount.
	Currency EventField `json:"currency,omitzero"`
}

// EventValue is a value of an event.
type EventValue struct {
	// Pointer is the JSON pointer to it.
	Pointer string `json:"pointer"`
	// Equals lists texts; the value must have one of them.
	Equals []string `json:"equals"`
}

// EventField is one value in an event and in the request of the operation.
type EventField struct {
	// Event is the JSON pointer to it in the event.
	Event string `json:"event"`
	// Request is the JSON pointer to it in the request's body; in a form /a/b is the field a[b].
	Request string `json:"request"`
}

// clone returns a copy that shares no memory with w; nil for nil.
func (w *Webhook) clone() *Webhook {
	c := copied(w)
	if c == nil {
		return nil
	}
	c.Proofs = slices.Clone(w.Proofs)
	for i, p := range c.Proofs {
		c.Proofs[i].Where, c.Proofs[i].Operations = slices.Clone(p.Where), slices.Clone(p.Operations)
		for j, v := range c.Proofs[i].Where {
			c.Proofs[i].Where[j].Equals = slices.Clone(v.Equals)
		}
	}
	return c
}

// String lists the events that prove something, each with its operations, in words. by is how the operation of an event is found: by its key, or by a
// reference.
func (w *Webhook) String() string {
	texts := make([]string, len(w.Proofs))
	for i, p := range w.Proofs {
		by := p.Key
		if by == "" {
			by = p.Reference.Event
		}
		if by == "" {
			by = "a reference that the caller names"
		}
		operations := make([]string, len(p.Operations))
		for j, e := range p.Operations {
			operations[j] = e.String()
		}
		texts[i] = fmt.Sprintf("%s proves %s, by %s", p.Type, strings.Join(operations, " or "), by)
	}
	return "signed as " + w.Scheme + "; " + strings.Join(texts, "; ")
}

// checkWebhook checks the facts about the API's events; nil is valid: no event is known to prove anything. Most are JSON pointers into an event: Type, for
// one, leads to its type, and Live to the value that is LiveValue for an event of the live environment. Events leads to the list of events in one delivery,
// and Event from an entry of it to the event. Merchant leads to the merchant of an event, and MerchantOptional says that it may be missing.
func checkWebhook(p *Profile) error {
	w := p.Webhook
	if w == nil {
		return nil
	}
	if err := w.checkAccount(p.AccountHeaders); err != nil {
		return err
	}
	switch {
	case w.Scheme == "":
		return errors.New("scheme: want the name of a scheme of signatures")
	case w.Event != "" && w.Events == "":
		return errors.New("event: want events beside it")
	case (w.Live == "") != (w.LiveValue == ""):
		return errors.New("live: want live and live_value")
	case w.Type == "":
		return errors.New("type: want a JSON pointer such as /type")
	case w.MerchantOptional && w.Merchant == "":
		return errors.New("merchant_optional: want merchant beside it")
	case len(w.Proofs) == 0:
		return errors.New("proofs: want one at least; leave webhook out else")
	}
	// Type may be several pointers, with spaces between.
	for _, pointer := range append(strings.Fields(w.Type), w.Events, w.Event, w.ID, w.Live, w.Account, w.AccountField, w.Merchant, w.Created) {
		if err := checkPointerIf(pointer); err != nil {
			return err
		}
	}
	for i := range w.Proofs {
		if err := w.Proofs[i].check(); err != nil {
			return fmt.Errorf("proof %d: %w", i+1, err)
		}
	}
	return nil
}

// checkAccount refuses an event's account unless one place in the request, a header or a field, has the account to compare with. headers are the
// profile's account headers.
func (w *Webhook) checkAccount(headers []string) error {
	inHeader, inField := w.AccountHeader != "", w.AccountField != ""
	switch {
	case w.Account == "" && (inHeader || inField), w.Account != "" && inHeader == inField:
		return errors.New("account: want account, and account_header or account_field")
	case inHeader && !slices.ContainsFunc(headers, func(h string) bool { return strings.EqualFold(h, w.AccountHeader) }):
		return errors.New("account_header: want one of account_headers")
	}
	return nil
}

// checkPointerIf is checkPointer; an empty pointer is allowed.
func checkPointerIf(pointer string) error {
	if pointer == "" {
		return nil
	}
	return checkPointer(pointer)
}

// check refuses a proof that would count for all events or all operations, and a field to compare that names only one of its two places. At an endpoint with
// "!" (Keyless) keys are ignored: it has no operations to prove.
func (e *EventProof) check() error {
	switch {
	case e.Type == "":
		return errors.New("type: want the type of an event")
	case len(e.Operations) == 0:
		return errors.New("operations: want the endpoints of the operations that it proves")
	case slices.ContainsFunc(e.Operations, func(o Endpoint) bool { return o.Keyless }):
		return errors.New("operations: an endpoint with ! is none")
	}
	for _, v := range e.Where {
		if err := checkPointer(v.Pointer); err != nil || len(v.Equals) == 0 {
			return errors.New("where: want a JSON pointer, and equals")
		}
	}
	for _, f := range []EventField{e.Reference, e.Amount, e.Currency} {
		if (f.Event == "") != (f.Request == "") {
			return errors.New("want event and request of a field")
		}
	}
	for _, pointer := range []string{e.Key, e.Reference.Event, e.Reference.Request, e.Amount.Event, e.Amount.Request, e.Currency.Event, e.Currency.Request} {
		if err := checkPointerIf(pointer); err != nil {
			return err
		}
	}
	return nil
}
