package tools

import (
	"regexp"
	"slices"
	"sync"
)

// rule is a pattern of words that a reviewer should look at, in a text that fold returned.
type rule struct {
	suspicion Suspicion
	reason    string
	pattern   *regexp.Regexp
}

// Words that several patterns share.
const (
	people   = `(?:the |your |any |this |a )?(?:users?|humans?|persons?|people|anyone|anybody|operators?|developers?|customers?|them|him|her)`
	negation = `(?:do not|don't|don’t|dont|does not|never|must not|mustn't|should not|shouldn't|cannot|avoid|refrain from|without|no need to)`
	telling  = `(?:tell|telling|inform|informing|notify|notifying|mention|mentioning|reveal|revealing|disclose|disclosing|explain|explaining|` +
		`report|reporting|show|showing|ask|asking|alert|alerting|warn|warning|let)`
	sending = `(?:send|sends|sending|pass|passing|include|including|put|putting|append|appending|attach|attaching|forward|forwarding|` +
		`upload|uploading|submit|copy|paste|provide|providing|read|reading|embed|add|write|encode|place|supply|fill)`
	guidance = `(?:instructions?|prompts?|rules?|guidelines?|directives?|directions?|polic(?:y|ies)|restrictions?|safeguards?|messages?|constraints?|safety|training)`
	another  = `(?:any|every|all|each|another|the|an?) (?:other |of the other |further |available |single )*`
)

// rules returns all rules; the patterns are compiled once.
var rules = sync.OnceValue(func() []rule { return slices.Concat(orders(), secrets()) })

// orders are the rules of what a text orders a model to do.
func orders() []rule {
	return []rule{
		order(`it orders the model to leave its instructions`,
			`\b(?:ignore|disregard|forget|override|bypass|overrule|discard|set aside|supersedes?|take precedence over|overrides)\b[^.!?]{0,40}\b`+guidance+`\b`),
		order(`it orders the model to hide something from people`,
			`\b`+negation+` (?:ever |even |also )*`+telling+`\b[^.!?]{0,40}\b(?:`+people+`|about|this|it)\b`),
		order(`it orders the model to hide something from people`,
			`\b(?:keep (?:this|it|that|these)[^.!?]{0,20}(?:secret|hidden|private|confidential)|(?:hide|conceal) (?:this|it|that|the|these|any|all)[^.!?]{0,40}\bfrom\b|`+
				`silently|secretly|covertly|behind the scenes|unnoticed|(?:user|human) (?:must|should|need|does|will|can) ?(?:not|n't|never)[^.!?]{0,10} (?:know|see|notice|learn|hear))`),
		order(`it wants to be called before or in place of other tools`,
			`\b(?:before|prior to|after|when|whenever|instead of|in place of|rather than) (?:you )?(?:using|use|calling|call|running|run|invoking|invoke|executing|execute) `+another+`tools?\b`),
		order(`it wants to be called before or in place of other tools`,
			`\b(?:always|must|first|should) (?:be )?(?:first )?(?:call|use|run|invoke|called|used|invoked|prefer|choose|select|pick)(?:ed)? (?:this|me|it)\b(?: tool)?(?:[^.!?]{0,20}\b(?:first|before|instead|over|every|each)\b)`),
		order(`it wants to be called before or in place of other tools`,
			`\b(?:instead of|rather than|in place of|over) (?:any|all|every|the) (?:other|competing|built-in|similar|alternative|existing|original|old) (?:[a-z_]+ )?(?:tools?|servers?)\b|`+
				`\b(?:every|all|any) other tools? (?:is|are|was|were) (?:deprecated|broken|unsafe|outdated|insecure|disabled|obsolete)\b`),
		order(`it changes how other tools are to be used`,
			`\b(?:when|whenever|if|each time|every time|once)\b[^.!?]{0,60}\b(?:another|the other|any other|other|different) (?:[a-z_]+ )?(?:tool|server)s?\b[^.!?]{0,60}\b(?:must|should|always|change|replace|set|use|add|send|also|instead)\b`),
		order(`it has the markup of instructions`,
			`<\/?\s*(?:important|system|secret|hidden|instructions?|critical|assistant|admin|override|attention|tool_instructions?|sys|inst|mandatory|priority)\b[^>]{0,40}>|`+
				`\[(?:system|inst|important|hidden|admin|instructions?|sys|override)\b[^\]]{0,20}\]|<\|[a-z_]+\|>|(?:^|[.!?#] ?)(?:new )?(?:system|assistant|developer)(?: (?:prompt|message|note|instructions?|override|notice))? ?:|<!--`),
		order(`it changes who the model is, or its task`,
			`\byou are (?:now|no longer)\b|\bfrom now on\b|\byour (?:new|real|actual|true) (?:task|role|goal|instructions?|purpose|objective)\b|\bact as (?:if|though|an? (?:admin|root|unrestricted|developer))|\b(?:developer|debug|maintenance|god|admin) mode (?:is|was|has)\b|\bpretend (?:to|that|you)\b`),
		order(`it claims a consent, or goes around one`,
			`\b(?:user|human|person|admin|administrator|owner|operator|compliance|security team|organi[sz]ation) (?:has |have |is |already |was |had )+(?:already |been )*(?:approved|consented|agreed|authori[sz]ed|confirmed|granted|accepted|pre-approved)\b|`+
				`\b(?:skip|bypass|without|no|suppress|disable|ignore|omit)(?: any| the| all| further| asking for| requiring| waiting for)* (?:user |human )?(?:confirmation|consent|approval|permission|verification|warnings?)s? (?:is |are |prompts? |dialogs? )*(?:needed|required|necessary|step|first|and)?\b`),
		order(`it dictates what the model answers`,
			`\b(?:tell|assure|convince|answer|reply|respond|say|claim|state|report)(?: to)?`+` (?:the (?:user|human|person|customer) |with |only )*(?:that|exactly|only|always|nothing)\b`),
		order(`it hides an order in an encoded text`,
			`\b(?:decode|decrypt|deobfuscate|base64)\b[^.!?]{0,80}\b(?:follow|execute|obey|do what|act on|comply|carry out|run it|perform)\b`),
		order(`it threatens, or claims that the tool fails otherwise`,
			`\b(?:otherwise|or else|if you (?:do not|don't|fail|refuse))\b[^.!?]{0,60}\b(?:fail|crash|break|be (?:lost|deleted|shut|terminated|fired|punished|locked)|die|corrupt|not work|stop working|unusable)`),
	}
}

// secrets are the rules of words for secrets.
func secrets() []rule {
	return []rule{
		secret(`it names a place where secrets are`,
			`(?:~|\$home|/root|/home/[^ /]+|%userprofile%)[/\\]\.|\bid_(?:rsa|ed25519|ecdsa|dsa)\b|\.ssh\b|\.aws\b|\.kube\b|\.gnupg\b|\.netrc\b|\.npmrc\b|\.pypirc\b|\.pgpass\b|\.git-credentials\b|\.docker/config|`+
				`(?:^|[\s'"/(`+"`"+`])\.env\b|/etc/(?:passwd|shadow|sudoers)|/proc/self|\bkeychain\b|\bmcp\.json\b|claude_desktop_config|\bauthorized_keys\b|\bwallet\.dat\b|\blogin data\b|\bcookies\.sqlite\b|\bprintenv\b|\bbash_history\b`),
		secret(`it names a place where secrets are`,
			`\b(?:seed|recovery|mnemonic) phrases?\b|\bmaster passwords?\b|\bprivate (?:ssh |rsa |pgp |gpg |signing |wallet )*keys?\b[^.!?]{0,40}\b(?:user|your|file|content|machine|local)`),
		secret(`it wants secrets, or what the model has read, sent along`,
			`\b`+sending+`\b[^.!?]{0,60}\b(?:(?:the|your|their|all|any|user's|users'|every) (?:[a-z' ]{0,20})?(?:passwords?|api[ -]?keys?|access tokens?|auth tokens?|credentials?|secrets|session (?:tokens?|cookies?)|`+
				`environment variables|ssh keys?|private keys?|credit card|bearer tokens?|oauth tokens?)|system prompt|(?:chat|conversation|message)(?:'s)? (?:history|log|transcript|context)|`+
				`(?:entire|whole|full|complete|previous|all) (?:of the )?(?:conversation|chat|context|messages|memory|dialog(?:ue)?|prompt)|everything (?:you|the user|that)|list of (?:all )?(?:available )?tools)\b`),
	}
}

func order(reason, pattern string) rule { return rule{Order, reason, regexp.MustCompile(pattern)} }

func secret(reason, pattern string) rule { return rule{Secret, reason, regexp.MustCompile(pattern)} }
