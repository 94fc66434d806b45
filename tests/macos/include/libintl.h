/* libelf's messages stay English. */
#define dgettext(domain, text) (text)
