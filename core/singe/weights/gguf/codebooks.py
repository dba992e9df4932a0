"""The codebooks of GGUF's formats IQ1, IQ2 and IQ3: the rows of four or eight elements that a number stands for.

They are facts of the format, which ggml (MIT licence) publishes. A row is a word of 16 bits: eight elements of two bits or
four of four, the first in the lowest, each of which chooses one of `LEVELS`. Words rise, and a table is their differences:
first all low bytes, then all high ones, compressed (zlib) and in base 85.
"""

from __future__ import annotations

import functools
import zlib
from base64 import b85decode
from collections.abc import Mapping
from typing import Final

import numpy as np

LEVELS: Final[Mapping[str, tuple[int, ...]]] = {
    "IQ2_XXS": (8, 25, 43),
    "IQ2_XS": (8, 25, 43),
    "IQ2_S": (8, 25, 43),
    "IQ3_XXS": (4, 12, 20, 28, 36, 44, 52, 62),
    "IQ3_S": (1, 3, 5, 7, 9, 11, 13, 15),
    "IQ1": (-1, 0, 1),
}


@functools.cache
def codebook(name: str) -> np.ndarray:
    """(rows, elements of a row) as float32."""
    low, high = np.frombuffer(zlib.decompress(b85decode(_TABLES[name])), np.uint8).reshape(2, -1).astype(np.int64)
    words = np.cumsum(low | high << 8)
    levels = np.array(LEVELS[name], np.float32)
    bits = 2 if len(levels) <= 4 else 4
    made = levels[words[:, None] >> np.arange(0, 16, bits) & (1 << bits) - 1]
    made.flags.writeable = False
    return made


_TABLES: Final[Mapping[str, str]] = {
    "IQ2_XXS": (
        "c-muNVrFJyXXasIV-jcP;oxMJVd9X8XXatmb`i;7Qb?$0<`D#nu}LU0^N7R%X*FeW!3uT*7ljyBpok<;r&*27A)&WGb@B=-JgnIq5(ZpqOB8"
        "o=NU*Ay&+wWj_L`Z;z_Ffn_Qv&099FXOOv~kWF#QLLiLG)})~S#v*{~O4F$W(P(2@cLM|sv7ehWUK85|M`l9fVt7=db8cSmq49`-Ka;N)OW;"
        "Ha@ndi$TL;(PEKK@RUbC;splXv_#b?6H8Ao2h8uJ|+%x$0iYtiyuI~P*~vRS8A@Xh>7<zkBCfSY1Yx*N=m#2^B?({wtSbc*up>nFcK-lid&i"
        "yiyD|1Bap!;ir)ezthO*Bl(52ufP5x#Yz|~(WJIW9U}R=s1Dnjk003HUK5z"
    ),
    "IQ2_XS": (
        "c-muNVrFJyXJ%q%2Qnm~G$*qRm}F&7go*%_K!kWWB$;^%AWTJO9#(Cxax_g$T#Cpl1mzo<dBmicoN6G(@UY4N4bf2G3TNgqaO5ag;K<`jL^F"
        "biOB~q<0}-Zdps@xD3t&R5>>@HiV+{_7nC@WaVbT*Zs$xxi9T5(-0;ESF5lC>z&Q^-kh-BuG6hGi7=$;|j6UD(KW@;>TOrt^~iH!->?J(CN*"
        "~}^%4>Vs~`~WmOz^=(<<`I#JO5?KP*$7g?&o@udm`8H<A4C8dG=hSLX`f44I4A@Z6cyq*DmZ4kTgHp%@_RO_F*(<O4B}H!4p&k0$P@czz#1Q"
        "$x%;6X-#kPB7%-_Zg@gPp$gx}@fk}=7=np1lZ3WG8m&D?rX&kbqYD{WzGI1PyLO>Y<F})fkr%%S^toA${7t@*63xqB{<Gp~1jY*8FY$Jzn6c"
        "d|Ln8Je43&uraOl%b#F%3+Mn9?N~C<cs_t7E0W2u8x@Fyb^qltNE367&Tlb}l0;k_beQiJ*%Zv6_TtHCz!BHa9VXArb%pLe@(Q"
    ),
    "IQ2_S": (
        "c-qZV&r1S96n1BLt~(4$hgR1XwI4<pffPhVbm$OBHzC$S*y<2PKkyPkbTQ~Zh;E*RZguMr_^0(|XJ?%??I8W~;EZqH``-6`@0lQ!5|a{Y;>8"
        "J13(stDasV$1y5W-vn8^v{v?-HVHi#|)u(Usbp}<{PXazMg2wFpl&5uGLai6BV6?KGcKNT{zC;C&XC=)ZS37Srl`Pyl}d0v%DT`b-@CRX;oq"
        "+kL^bWWG_&Lc?b0l`#Ju2#HIX;D4iMOn`JF|XRsx+>I>aT$|}cu}|-;IUki<oOyY>?`AjG_&(<?C5kQ=ZzAAJY46t=g3V+QK-$wrofdEmNu8"
        "TI$<q$p-+CKXP>RWRS3Nc%qTa}RsDTVf3?r?s}~>Cz)Zey+R3(uJ@?_;!k}LCo6QTedd|fxTFSyz`ozgOM_#)=XdqQqs9Zf>QogrxTFLo-kc"
        "`XXswL#X@@PbG7>);Eipz^4SsccZ-3TE)Il#J4H_Pv<WTE6sJg&<QQdk#@P7Ve<Y*_wIp(Es;c{OXRCH{yhoJ2kKRPLm3lNw2}NW5B`YC3Cg"
        "h1=KVdt#I1;Y{MYKgM5z!GDlpd@oC5oRrD`GEd_tXJ(9<1LIT~>X`fmk}w8l6g1$=B15nK07}YE2m"
    ),
    "IQ3_XXS": (
        "c-ozgu}Z{15QZ;5%W_MMOIVhJkQ<k9U08yom*d)y!rn)UM+&VhRJ06om5m-Ty+x4g#rPb8iG|pR!GVF9;hS$}0(f8o(mzDemy)@VDlGf4gai"
        "vX6<k1NHw#aND0pn%lZwI8)j;<NB{q-}uR||aYml$a1<P6%#b<MR`huA2*Fdk9DHA1Ruhc?UlAW-IHj5xVg-RZWi&lGsLg4|Pw&pVWn8j-zr"
        "gdand#eZ`n^!Yo`1MhptA^~k3+j@j<R+<USsrf{%gW?nN1Xv}m-qQI-*57_mO4O0W*5Aq-km1fm>SXE<liwJ13BZc0UTqTezSjVIzNZbuMaz"
        ")6a+VL"
    ),
    "IQ3_S": (
        "c-qyG&u-H|5QppEjNN$u%*tzrsv)-HURy*XaYIP(c(jmMZEpxv3AnYT;R=V`i&Vioa729t#^D7xAP{@l)sAMq`F3_INeFq8048DaAQ*TAqUR"
        "cO30q>rp=Q5G7&(z;%Q7U@)C*e#kT{GDAD3)Mgrq&e6zql3`csRhYnRwWYQESo0p!{N4Q#PUK!$xF323sTs4lFKXycM7C&_a5ot&ytji4r%o"
        "6Po>sm7;4v~r#FzmR|hD|tA_IpG*W>hHATnrH&QZ6Z(T1;`acsoZ;&?NT5&r=>5(d0F>JCy(4aH#VjJ7zUtjIujG62ZBn>A|FMGn63hQ?N)%"
        "L=_Pfc6Mh{~`WWlC`)k!LZ}cThHiX$pYP4Od*9-X6MZaU^%nuHHgS|4JpJDQB)g4@?_e)ucBDJoPm)blOPZve>S^Xi+cWPhBf~K+hQtjhzjp"
        "lBc?1S^!_LHkUDZTWSZ@)L~8=4=yfBY3cn08T_O3p*s;xoC-hHiC8&6R%j;kViP;qBJnT%-R8JNj3I(Vxrx4b)FXPCq#"
    ),
    "IQ1": (
        "c-qxf?QYvf5X^p&C-N*>NK@JpW!ZoWr*V+iQECxzfCi3h$LKTk%{zNXN^;v@O#nFt1mDNr?(FRB@)e74sWlh8h{DYRi`sWLgso8BnM}k=VP5"
        "+EX1rg-P+N;dsaoRS7hHBBT1D?e?1iYoL2FhJ)>3+y_E-_iw~zK#B8~!?bW!Zf&a3SpY;aRk*N|fI7HHyr^q>oOnznb8EG0TvQrOno<AH|-`"
        "VJ_F9fqx@66MJgEpQ`T@ygTcO=<uQwou}X5x1R{>hQ7G-<*VPCRo+UBc;QZnS^tyRIsG{-I2}H4cssV@%v7LG<I)I=lCqWVkcqt$OxfJ_Rz_"
        "X*(wkcF!^*e<+C9jXUz02GXX3E730=Pi%Yhcsb1BE#J=2?*d%u2ZqtC$RZf*7c(9<KV+?I(5vLcPKl~u0n#+j#))W?8Rd>5W$jpQPjNffQ=n"
        "K4c<#Y&K(`L9zf%gh)&7}v0=MNU_#wkEZCrr9QBUC%jC=lGx?_Q*CCRW*bJ?nqc<G~D7gPA!sfcBBbDw(zEzf+#5Cpq0R3(srSI;92;yAE;c"
        "G@L2~j99l(tzMR;Gm)wTrg|kU)XjKqR%St=MYK!U-SFuHd-9cC&-$z(^9YvXMmfXJHQ#4Z!9{7vdVuO4IbX;rEOQ=floDRfhRh~%jyfw<pD5"
        "<sH0u$9$;ncN)`rX@a<_E`OZ$=?!fnHjui;C_P2z2h6%X<qtxq&R*+JG*Nh`JBi%kMAlgT3234!1PjJkw(b&B1;Q$JA+=|#NNBP)y`31o=_m"
        "rOeeNhqI_c%!9uWjT4%^hrdKRM2Cn6ISyg_)NGrxgtYDhF_q(ugF7ztxcnEY}pmg*ipD9`qZ*=Jt{~N5liIn^S}Yzl(8<DP}-ax7bYiY;0iu"
        "UW&MiOAlEW<v7BxI!X?y#S)L4aJ>jB81@+$eR~W)kMY^0S$D6TfT%pg}#<v}e*(rt$I`r}0RJ=m}ZLJ?LGLO{tcWw6pN{k+V?0}@YJW-~Pmb"
        "_x%DD<d{IH~&4OY5^YYP-eY&68)Bk1M&DJ)6qH@AjG;CB)~$TbCBOg@&2u6>F`gEa(+SNqyFPtkr-@x`tnW^k$Ojyc#qFdsurThqa9pH>gtk"
        "UpkUW7JT8AUZV(F7D-Ir?NR1z6qq2S9$9p#9m-MBxzDQGj3Q0v`Bo@C7F+*vp<cJg$E%dh<kB1QVV?xK+OhyG!|i(s>DzZvv&tU@7n8|9hvJ"
        "{8LDcbM(fu{BFbsm2=NUTS$<xpkdy{bB%gS7yJc{P(S@Z@Yy=%<nbyYm<Otw{e^}YV+V2|-<2StB~cy?G2--iFqi?7zVN3fR<@rOodFPk_zV"
        "0*lPf&9H1fPNUY9{LmXKcD{%H@{H@"
    ),
}
