package main

import (
	"net/http"
	"strings"

	"github.com/slack-go/slack"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/profile"
)

// slackConfig is for an API without keys: a message is an operation, sent once, and held (for a person to decide) in case of doubt. Slack's reads are POSTs,
// too: Writes alone would make them operations.
func slackConfig() oncehttp.Config {
	chat := func(req *http.Request) bool { return oncehttp.Writes(req) && strings.Contains(req.URL.Path, "/chat.") }
	return oncehttp.Config{Profile: profile.None(), Operation: chat}
}

// newSlack returns an SDK of such an API. It repeats nothing by itself.
func newSlack(client *oncehttp.Client, url, token string) *slack.Client {
	return slack.New(token, slack.OptionAPIURL(url), slack.OptionHTTPClient(client.StandardClient()))
}
