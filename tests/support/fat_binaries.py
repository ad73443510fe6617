"""Fat binaries of nvcc 13.5, which the tests cannot run, of one kernel, each with other options of nvcc.

::

    extern "C" __global__ void fill(int *out, int n) { if (threadIdx.x < n) out[threadIdx.x] = n; }

``cuobjdump -xptx all`` gave the same PTX as :func:`pipesim.launches.images.entry_text.ptx_of_entry` for these files and
for twelve others that are not kept (``-G``, ``-dc``, ``-no-compress``, each ``--compress-mode``, eight architectures).
"""

import base64
import struct

from pipesim.launches.images.code_image import Peek

#: -no-compress -gencode arch=compute_90,code=compute_90
PLAIN = base64.b85decode(
    "Q0-"
    "N^0RRvHAOZjY000000RRC3Pyhe`&;bAd0000000000KmY&$1po;ES^xk500000000005dZ)H0000000000000000000000000NB{r;00000000"
    "00000003JMAe3JMAeE_P*db7^mGAUQ5I3NCbEa%W|9AaiYBIWP(?VPs@-"
    "Wpi_1b7^{IAT~4#3JMA?c4>2IVr*p~E@f_Xa(N(TX>4pL3NCPAa$#*CE_F6EAZBT7Y+rC;a$#*>Ff0l#aA9&`Z6GdnGcq7%X>4p?aA9&`ZC^18"
    "DGGZEE^=jOATDrnWn>^Fa6B?TI|?pxWoIBRVly%zC2~A7K0697a%E>AE@Cz`ASH5SJT*Q$3JMBrWG--Fa$#*Qbv860C30jjEFfEEX>4p?aA9&`"
    "ZC@~5I|^)ME^uLTVQnsTGcq70axyF+TV`o&Y+rC;a$#*>F<m<fZEtoibu%&`C2}z=ASHBZWG;9+3Ug(2a4u(ME_E|9ASG}yEFdLvF)Sb@axyy#"
    "KqYW7AYyW1AS6s*UqV7KUotxi3S)M3VJ>uUE@y0SVqt79bv860C30jkEFdLvWHCDmZFOuecWGp0E_E|9ASH5SGb|t_axp9*G&>4mWMnRLHZ&k5"
    "a%40tASH5SGAtk^a%3|*3UhQWXKZg`VQemSGcq7sC30jmT`V9aaxyy#3M5QlUqV7KUotuha%FTo3JQG+3IG5A00000"
)
#: -compress-mode speed -gencode arch=compute_90,code=compute_90
LZ4 = base64.b85decode(
    "Q0-N^0RRvHr~v=~000000RRC3Pyhe`SOEY400000QUL$}KmY&$1po;ES^xk500000000005g-"
    "5n000000000000000$^ifX00000NB{r;0000000000000006AA$U@*FO9WpZ<AZ*CwtE;R}+bYXI5Wpp5OZC^Ps3NB$}WO8M5b6<05dSxIsG%o"
    "=05NUI1Vr*p~E@f_Xa(N(TX>4pL3NCPAa$#*CE_F6E5&#ij5CAq`Ff1AXC^Iq|0P_ej3MmSE3NCVGXCN+ca%E&7C2%}4K06WshGH`^ASH4<GZ6"
    "st05&urC30juH9k8E3JPpwRsbR{br%3gF)Sckb^s?`J0k!AO8^=&A^>wST{{YGZ+0C3@&hp}ASHBZWG;9+3Ug(2a4u(M82~eIF)SVc^cZq7I|@"
    "K0a4{faa$z7OOkZC@LNH%4I|>S8c64DbbZ;(aY;R&=Y>)sUGAxz=lRFA+b!;woX=G3UGje1zQ2>H8I|^ZBWG-"
    "_r046jnH2_sJI|_4jPXItOG9X(a025t=02K;+0Khs5a%FTo3JQG+3IG5A00000"
)
#: -compress-mode size -gencode arch=compute_90a,code=[sm_90a,compute_90a]
ZSTD = base64.b85decode(
    "Q0-"
    "N^0RRvHAO!#b000000ssL4KmY&$fCB&k00000c>@3d000002mk>9S^xk500000000005r7Z?000000000000000bPWIi00000D77#BU~~+98vq"
    "uigggM3a|fydU;%+@2t?rY|AYMcpvxP?r~}3CwN-"
    "j6)bmm+R`fzQmLi^~_<YO4!;z3V$@n_8*xp1+DN}O*cmQw!rpz>JA2rjrGtHN=eZ}F@67498jNNf|-N}4vUvFLIxt0BOmY-cMKgZ*$%X#wi)Zt"
    "2&^U%~*`g*n$x6{F}rEgbuHr<uqQLf@lmtIT1p}_K6IIFU2ZY^C;`|vZKCccUug~*k^kM#J*je9W&$p=j;k9e6mn_*Z`OlZtXwM(d`ZQo8^kK-"
    "|BWy+3Ol(UK5SKiOA?$~;!DZ6*6j^(Fr^INauSN>ypEEg;MJT>ju8zUYgDJB1_CLZ#o|KC8zMu@g1I6g$%){w3lhhQs5U}$$ua@!X{2unl9NCt"
    "5r{Ct1qx|0XL;PhFFh4(7?Er*;Beya?D2=97geelZIyy!7SRrM(T3zPK)egXW*(oZ5}pZ}-*sG#pP^9K|1ze#?EACS5S8Y92PX-"
    "#Y89|QD%#`g;3znH{-0WiT2Xz@o0t@A1wYTOkU8;#gpreUJ%&e;N3L5pqs;r;Q#$Q2PQa2VY-"
    "|Fq(5!xwin3`qaR&HjBMvnFZ3@=!S^4oc4x8N*FP%g{u41(Cx*Hvu-Xuv8H)2)bmzeI{DI|FCx@eZC1!{S+_+SR-Eu8b2`S7nXk2qeJ|A&@o5f"
    "YGC1f5WAv21JnY5(x`!ON=8UTq##KO>EKFc#_7UAl4ly|h!9F*!6i{tR8o(^Fa{8?qGL<^!o@8i5JZRi!j=izikcaJIWTldx#(RAr#k4!btlDz"
    "+aUlqKyn*^l9|~^Wi-GD!83Ggu8M3x4@e}1Yruogktj7!;@A`;ETloW4HzyoTrvg4U?0Zs;nEl*N!5f&7SeifrcH4TZ%hVls87VXr8-"
    "(Le4z8vCo>wEM(z*~;~x>2rECG(Asp|2c2Xcr=~2mk2zi8<UxKaqne8l%ue;%kJL){wth{I3%ghnIDfXqvi9A?~$HopgvZQ>gs*qlG&JV{ng>r"
    "i)^W*eWXT0KQ3br-*D01{381BY1+z_(J=>)>XuxMFm<IJF1OgV)g+%75|Js-W!ZzK&J^pGZ)LDM=!wLmT`3+S-PnkaSXG(9B-"
    "<pF&|U@I*1lndL|q;@4eJ_5R!GXMYp000000RRC3Pyhe`5CH%H000004gmlFKmY&$1po;ES^xk500000000005r7Z?000000000000000%K-"
    "oY00000NB{r;000000000000000D77#BV9Nj{2ms>ED;Yp}111oOEu{W;ksJ$85X8w=@-z)&Ou!F-"
    "d+PpdoZWG&+S;F_Q1stx{ZW#eFGqeS7D#6?u-hKoZ}*t_WlYm`Q9-pCtCBxR4)ONk#@e6qFSmse^bX{)s#+Z4-"
    "_Cu3uEHcx7O*Empirn6=kV)>^E>K<A4pOd*QGGxSI=e}z7Ji;Y1Pd8!(VZSahg+@icd~oTH}1LeYZw)dAe@AWxL;(Z|VnfI^*#@B`8ovgp?0}r"
    "0gVWF+Y)m`pDtDR-!asEG?&COu0@2$i!fiRbT&+8bt7my@Xugc7T-R99}RI&JodvGm~UvVd?~nJGm{m+nIhZ?>J>)KnMT;"
)
#: -concat -compress-mode size, [sm_80,compute_80], [sm_90,compute_90] and compute_100f
GROUP = base64.b85decode(
    "Q0-"
    "N^0RRvHC<p)m0000000993H~|0vKmh;%00000Kmh;%KmY&$0RR910000000000000005r6;y000000000000000cm)6e000000{{R3_y7O^0RR"
    "C300000&;bAd0000000000KmY&$1po;EPyhe`00000000005dZ)H0000000000000000000000000NB{r;0000000000000000RRC3&;bAd&;b"
    "Ad0000000000KmY&$1po;ES^xk500000000005dZ)H0000000000000000000000000NB{r;0000000000000000RRC3paTE^*Z}|l00000000"
    "00KmY&$1po;EWB>pF00000000005da_n0000000000000000000000000NB{r;000000000000000D77#BV0Z+z2>>F`FBvd-"
    "0~Y2U7PC4LLu9>RDhvM3bTlwfAshh!0AyKqSdi<y`&Mu9H^Vp_z<u3W`{S3jM~9L^86V^8kdokxJM%rVK)joU9{1t?yGzY6gQ7633hdRHog6~6"
    "n7J2s9vwO#cUvgK??9l-"
    "vc*9@_S}~UD@+n;A%i3&5(SI17T<DNzpGC8fh2{2VG2XO{jR>^``~%qW>LMt{5E@8H+BkRbJ~sAIA)FUeK#8H8|}`VzWaT7$AV!u>Ri4DF(7b="
    "1a~(Fqru&AOo2@|j)%?i*=hQ$)=A7jy=jR9V}uIy@4^nG5ZL8gkm58RVhQHdGiJ-"
    "|d;pof*knX~0)GfJJcQul4kZK@aOMJ}K%RpLrUuU8L^E*KfdnuDn79!fxSO?e-0sZnUJ-8cQL-rn00993$N&HU=mY=&00000;sgKyKmY&$0RR9"
    "10000000000000005r6;y000000000000000pcw!F000000ssI2hyVZp0ssL400000C=37q0000000000000002mk>9Pyhe`00000000005dZ)"
    "H00000000000000000000000000ssL4C=37qcntsm0000000000000002mk>9S^xk500000000005dZ)H0000000000000000000000000D77#"
    "BV4xVqCIBWds66o6=5UKDco?ky%)}*f2J^X-uEb>M1`h8m!?kK;_p_&IOL+APVxu7aktiE_$P5lPz-_y=?rb8Zlqs12m;jXkASEs+{{UD-"
    "r$Ik^|BDi0?kScJG0#0Gx>J0IqMm64|N2cZSyp#Cj|5goj`4ZK@9oJs7C4k&`GtWzAPd*HF3Yw)7T&EjI5e%!ZDE`IW99hw=5#I0x^8c$%EDGw"
    "gE+Z&_v_urYVfDF^7~U?sQdBa)i+e1hLvGC=Eds2{@LT6|Hk9UPw5{pzy7J;Uv_A{MNC3?0-"
    "tmK%z<GK5gzSA&3~P<H%P|#4+C+S*w`EWzwJwf{=f1sCh%wY{{iB8(Emi>f9je3rHP@tM(5vm1V7NrFDbgvr*N+_y~s#?6RB-"
    "u^~EVK2eT7zTW>cF42uemn+mrS@S00?ZV$)fHEya)DuJQiD$+J)+f*WU-"
    "&amqw+HmSxs=u6e0<CbW#G?b{O<?C??>8E5^@{wcCYGdeJuaBAl$|>i;gf$XUry!G+jQ8bE)T<TzT!%JYMI&k1vZVX~Y1ql4HHj5_l2fWVl1im"
    "yBt@&>X$VXahuOAWyYZt<)mf1)~ml{Wz}wYmZVr{~?YHPyVDK^xr=WderIxik|<!{NBNbN3l$i|DGcS^FN|oy4Z_c#(4DW`TVkzU)Xw1oB{sB{"
    "0_erIyukdkGgiokXyk6N<T-MNj;N8wOUda$~GtOjCrpQQsGr3C2zuQJOpniC74A0^h)Png?-pB^l=Nhd}a+M&=>c^L0|ltI&zif7qyNL`M&-"
    "7hL_(nHcj@WiPQR1I&Q`T_|{s0zuu>8lOzelK{Jq;1qm>vZGV%KMlfP_iIZVKf6Vq=cD1eRNyy0>{H^QT0)bhmp>S$OMkGl}QWy>qqM4$a6g*N"
    "XltmJVgBSt92qTIR14%T21TsM+#VJTSi&X!~xy0_J@zz&S!Q$4tw$DueP2Ty}{tbzb3>KGY-"
    "O&{6b&s!jD2Ig`6NUk)WguYgpq!RNhFl~IUUNKPoI;|RVF5y6J>%W5`<R|2gDr+pD=-"
    "Wc*n&v>s`w;yConEjj$NJgca&zjDiW0$H|+4*7t`|)Rd8)boKF`3@pXFP>XP7hnRG07QiLaj@>rVry|cNzo}2dx8yyTy$qwZFXJk4UW;C9j?eb"
    "_#i%Sx)QdIj;DYdrzxh6x?Y)$*-nTYBcw1}n<Ij915)yR#FFu_GWuy_rE78$#2yvnqNs+h<!OtD2PB-@%{Ci0DGr_*g%1jgF*@v;TUMgmYH-"
    "y#Prk9@QXYin}#L=_5!y}eWJG#A_<{#t57EYz1ku#n1&{R}Q&A;#tJmm!z{3Sb;RjP4llWCjLbTFoso3;3v@gWx^*D3AQ3Ly?UqY=WaT=lL@eM"
    "3}r}7=_32Y<Dqv1M67_U0ZaR;G95^T_yVJL(U8V+=0RZAg(pJvJmd(=k}uZs{$v<gJCm|Wf2%gRF0-r6r4AajNFpH=c-"
    "^LS*(SKz8GGv;5~B=%+@YA?{nuT!qGVIKY+_6Rw3l_C<}tx$D2jE9fP?L9WLQQ9zaTQ8+`T*^>;igT_7Fnz!@o7w=_9wzzhp*+0zogtQcdy@`f"
    "k^_DsIX!ukLJ00000"
)

BASE = 0x7000_0000  #: where the memory of a test begins


def memory(data: bytes, base: int = BASE) -> Peek:
    """What reads ``data`` as memory at ``base``; OSError for all else, as of an address that is not mapped."""

    def peek(address: int, nbytes: int) -> bytes:
        if not (base <= address and address + nbytes <= base + len(data)):
            raise OSError(f"{address:#x} is not mapped")
        return data[address - base : address - base + nbytes]

    return peek


def entry(
    kind: int, number: int, payload: bytes = b"", *, flags: int = 0x11, packed: int = 0, raw: int = 0, header: int = 64
) -> bytes:
    """One entry as nvcc writes it, without a name and options."""
    padded = payload + bytes(-len(payload) % 8)
    fields = (kind, 0x101, header, len(padded), packed, 0, 5, 9, number, 0, 0, flags, 0, raw)
    return struct.pack("<HHIQIIHHIIIQQQ", *fields) + padded


def container(*entries: bytes) -> bytes:
    """The entries with the header before them."""
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, sum(map(len, entries))) + b"".join(entries)
