package sign

import (
	"errors"
	"strings"
)

// WeChatPay returns the layout of WeChat Pay's API v3 for requests, WECHATPAY2-SHA256-RSA2048. merchant is the merchant's
// number (mchid), serial the serial number of the merchant's API certificate, and key its private key for
// [RSAPKCS1SHA256], or the public one to verify only. The API has no header for a key: the merchant's own number for the
// order or refund (out_trade_no, out_refund_no) is in the body, and so covered. An error: key has another algorithm, or a
// number is empty or has a character with a meaning in the header.
//
// Sources: the provider's page "Signature Generation" (pay.weixin.qq.com/doc/global/v3/en/4012357147, of 2025-01-06), and
// the formats in its SDK (github.com/wechatpay-apiv3/wechatpay-go, core/consts/const.go, read at 00f928d).
func WeChatPay(merchant, serial string, key Key) (Layout, error) {
	if key.Algorithm() != RSAPKCS1SHA256 {
		return Layout{}, errors.New("sign: WeChatPay takes a key for " + string(RSAPKCS1SHA256) + " and no other")
	}
	for _, text := range []string{merchant, serial} {
		if text == "" || strings.ContainsAny(text, "\"\\{}\r\n") {
			return Layout{}, errors.New("sign: WeChatPay: the merchant's number or the serial number is empty, or has a character that it cannot have")
		}
	}
	return Layout{
		Key:  key,
		Text: "{method}\n{target}\n{timestamp}\n{nonce}\n{body}\n",
		Headers: map[string]string{
			"Authorization": `WECHATPAY2-SHA256-RSA2048 mchid="` + merchant + `",nonce_str="{nonce}",timestamp="{timestamp}",serial_no="` +
				serial + `",signature="{signature}"`,
		},
		Encoding:     Base64,
		KeyElsewhere: true,
	}, nil
}
