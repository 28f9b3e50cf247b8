package main

import (
	"github.com/openai/openai-go"
	"github.com/openai/openai-go/option"

	"github.com/oncehttp/oncehttp"
)

// newOpenAI returns an SDK made by Stainless: the zero Config is enough, and a call with a key is an operation, as with
// option.WithHeader("Idempotency-Key", key).
func newOpenAI(client *oncehttp.Client, url, secret string) openai.Client {
	return openai.NewClient(option.WithAPIKey(secret), option.WithBaseURL(url), option.WithHTTPClient(client.StandardClient()), option.WithMaxRetries(0))
}
