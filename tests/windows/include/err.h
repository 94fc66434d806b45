/* lib/system.h wants this header or error.h; libelf calls nothing of it. */
