package main

import (
	"github.com/openai/openai-go"
	"github.com/openai/openai-go/option"

	"github.com/oncehttp/oncehttp"
)

// newOpenAI is an SDK that Stainless makes: the zero Config does, and a call is an operation where it is given a key, as in
// option.WithHeader("Idempotency-Key", key).
func newOpenAI(client *oncehttp.Client, url, secret string) openai.Client {
	return openai.NewClient(option.WithAPIKey(secret), option.WithBaseURL(url), option.WithHTTPClient(client.StandardClient()), option.WithMaxRetries(0))
}
