package main

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// shopify returns an API like Shopify's: a mutation of GraphQL, whose refusal is a 200, too. The key is a variable of the query, for the directive
// @idempotent. In answer id 0 means that the amount is refused.
func shopify() *api {
	const query = `mutation refund($input: RefundInput!, $key: String!) { refundCreate(input: $input) @idempotent(key: $key) { refund { id } userErrors { field code message } } }`
	type input struct {
		OrderID string `json:"orderId"`
		Amount  int    `json:"amount"`
	}
	type variables struct {
		Key   oncehttp.Key `json:"key"`
		Input input        `json:"input"`
	}
	type request struct {
		Query     string    `json:"query"`
		Variables variables `json:"variables"`
	}
	return &api{
		name: "shopify", path: "/admin/api/2026-04/graphql.json", contentType: "application/json",
		request: func(key oncehttp.Key, order, amount int) string {
			return encoded(request{query, variables{key, input{fmt.Sprintf("gid://shopify/Order/%d", order), amount}}})
		},
		amountOf: func(body []byte) (int, error) {
			var r request
			err := json.Unmarshal(body, &r)
			return r.Variables.Input.Amount, err
		},
		answer: func(id int) string {
			if id == 0 {
				return `{"data":{"refundCreate":{"refund":null,"userErrors":[{"field":["amount"],"code":"INVALID","message":"The amount is not refundable"}]}}}`
			}
			return fmt.Sprintf(`{"data":{"refundCreate":{"refund":{"id":"gid://shopify/Refund/%d"},"userErrors":[]}}}`, id)
		},
	}
}

// jsonRPC returns an API with a method of JSON-RPC 2.0, whose refusal is a 200, too. The key is among its parameters. In answer id 0 means that the
// amount is refused.
func jsonRPC() *api {
	type params struct {
		RequestID oncehttp.Key `json:"request_id"`
		Amount    int          `json:"amount"`
	}
	type request struct {
		Version string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  params `json:"params"`
		ID      int    `json:"id"`
	}
	return &api{
		name: "jsonrpc", path: "/rpc", contentType: "application/json",
		request: func(key oncehttp.Key, order, amount int) string {
			return encoded(request{"2.0", "pay", params{key, amount}, order})
		},
		amountOf: func(body []byte) (int, error) {
			var r request
			err := json.Unmarshal(body, &r)
			return r.Params.Amount, err
		},
		answer: func(id int) string {
			if id == 0 {
				return `{"jsonrpc":"2.0","error":{"code":-32602,"message":"Invalid params"},"id":1}`
			}
			return fmt.Sprintf(`{"jsonrpc":"2.0","result":{"payment":"p%d"},"id":1}`, id)
		},
	}
}

// encoded returns a value as JSON.
func encoded(value any) string {
	text, err := json.Marshal(value)
	if err != nil { // there is no such value here
		panic(err)
	}
	return string(text)
}

// envelope is a SOAP message, as far as it is read here.
type envelope struct {
	XMLName xml.Name `xml:"http://schemas.xmlsoap.org/soap/envelope/ Envelope"`
	Body    struct {
		Pay struct {
			Amount int `xml:"amount"`
		} `xml:"pay"`
		PayResponse struct {
			Result string `xml:"result"`
		} `xml:"payResponse"`
	} `xml:"http://schemas.xmlsoap.org/soap/envelope/ Body"`
}

const soapMessage = `<?xml version="1.0"?><soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/"><soap:Body>%s</soap:Body></soap:Envelope>`

// soap returns an API with an operation of SOAP 1.1, whose refusal is a 200, too. The key is in a header of HTTP; a program (readSOAP) reads the outcome out of
// the XML, since a profile cannot. In answer id 0 means that the amount is refused.
func soap() *api {
	return &api{
		name: "soap", path: "/services/payments", contentType: "text/xml",
		request: func(_ oncehttp.Key, order, amount int) string {
			return fmt.Sprintf(soapMessage, fmt.Sprintf(`<pay><order>%d</order><amount>%d</amount></pay>`, order, amount))
		},
		reconcile: readSOAP,
		amountOf: func(body []byte) (int, error) {
			var e envelope
			err := xml.Unmarshal(body, &e)
			return e.Body.Pay.Amount, err
		},
		answer: func(id int) string {
			if id == 0 {
				return fmt.Sprintf(soapMessage, `<payResponse><result>DECLINED</result></payResponse>`)
			}
			return fmt.Sprintf(soapMessage, fmt.Sprintf(`<payResponse><result>ACCEPTED</result><id>%d</id></payResponse>`, id))
		},
	}
}

// readSOAP is Config.Reconcile: it reads the outcome of a held operation (nothing more is sent until its outcome is settled) out of the last answer
// to it. The zero Resolution, for anything unexpected, leaves it held.
func readSOAP(_ context.Context, rec persist.Record) (oncehttp.Resolution, error) {
	var unknown oncehttp.Resolution
	if rec.HoldReason != persist.HoldUnclear || rec.Answer == nil || rec.Answer.Status != 200 || rec.Answer.BodyDropped {
		return unknown, nil
	}
	var e envelope
	if err := xml.Unmarshal(rec.Answer.Body, &e); err != nil {
		return unknown, nil
	}
	switch e.Body.PayResponse.Result {
	case "ACCEPTED":
		return oncehttp.Resolution{Effect: oncehttp.EffectHappened, Answer: rec.Answer, Note: "ACCEPTED in the answer"}, nil
	case "DECLINED":
		return oncehttp.Resolution{Effect: oncehttp.EffectAbsent, Answer: rec.Answer, Note: "DECLINED in the answer"}, nil
	}
	return unknown, nil
}
