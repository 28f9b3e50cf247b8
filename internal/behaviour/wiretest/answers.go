package wiretest

// Mismatch returns the answer by which Draft07 says that a key belongs to another request.
func Mismatch() Reply {
	return Reply{Status: 422, Header: "Content-Type: application/problem+json"}
}

// Paid returns a wire that answers each send with status 201 and the id of a payment.
func Paid() *Wire {
	return &Wire{Replies: []Reply{{Status: 201, Body: `{"id":"pay_1"}`}}}
}

// Maintenance is the page of a gateway whose API is away.
const Maintenance = "<!DOCTYPE html>\n<html><head><title>Scheduled maintenance</title></head><body>Back soon.</body></html>"

// AlreadyDone is the answer of GoCardless to a repeat, as its SDKs read it.
const AlreadyDone = `{"error":{"type":"invalid_state","code":409,"errors":[{"reason":"idempotent_creation_conflict","links":{"conflicting_resource_id":"PM/1 2"}}]}}`
